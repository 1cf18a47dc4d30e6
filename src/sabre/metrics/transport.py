"""Exact optimal transport between two samples of equal size."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.metrics.assignment import solve_assignment
from sabre.metrics.points import Points, cost_matrix, matched_cost, state_labels

__all__ = ["Transport", "optimal_transport"]


class Transport(NamedTuple):
    """`cost` is the mean cost of moving a_i to b_assignment[i]; no permutation has a mean below cost - `gap`.

    The gap is rounding only: that of the potentials that prove it and, but for Hamming, of costs to float32.
    """

    cost: float
    assignment: Int[Tensor, " n"]
    gap: float


def optimal_transport(a: Points, b: Points) -> Transport:
    """min over permutations s of 1/n sum_i c(a_i, b_s(i)): the exact transport cost of the two samples.

    For the Hamming distance, which is a metric, states that both samples hold are matched to each other first, at no
    cost. That loses nothing: let a_i = b_j, and let s send i to k and l to j. Sending i to j and l to k instead costs
    c(a_l, b_k) <= c(a_l, b_j) + c(b_j, b_k) = c(a_l, b_j) + c(a_i, b_k), no more than before. Squared distances break
    the triangle inequality, so there all points are matched together.
    """
    n = len(a)
    if len(b) != n:
        raise InvalidArgumentError(f"optimal_transport: samples of {n} and {len(b)} points; give equally many")
    assignment = np.empty(n, dtype=np.int64)
    left, right, gap = np.arange(n), np.arange(n), 0.0
    if a.is_hamming:
        left_common, right_common = _common(a, b)
        assignment[left_common] = right_common
        left, right = np.delete(left, left_common), np.delete(right, right_common)
    if len(left):
        solved = solve_assignment(cost_matrix(a.take(left), b.take(right)))
        assignment[left] = right[solved.column]
        gap = solved.slack * len(left) / n
    cost = float(matched_cost(a, b.take(assignment)).mean())
    gap += 0.0 if a.is_hamming else 2.0**-23 * cost
    return Transport(cost, torch.from_numpy(assignment), gap)


def _common(a: Points, b: Points) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """The positions in a and in b of the largest common part of the two as multisets, equal states side by side."""
    left, right = (_ranked(labels, len(a)) for labels in state_labels(a, b))
    return np.intersect1d(left, right, assume_unique=True, return_indices=True)[1:]


def _ranked(labels: Int[np.ndarray, " n"], n: int) -> Int[np.ndarray, " n"]:
    """A number for each position that says its label and how many equal ones came before."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    rank = np.arange(n) - np.searchsorted(ordered, ordered)
    ranked = np.empty(n, dtype=np.int64)
    ranked[order] = ordered * n + rank
    return ranked
