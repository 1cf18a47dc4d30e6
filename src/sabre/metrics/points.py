"""The geometry of a target: its states as points, and the squared distances between them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.targets import AbstractTarget

__all__ = ["Points", "cost_matrix", "cost_rows", "matched_cost", "merged", "points", "state_labels"]

_PRODUCT, _CHUNK = 2**23, 2**20
"""Entries of the matrix that one product makes, and those that are handed out at a time, to stay in the cache."""


@dataclass(frozen=True)
class Points:
    """Points whose cost c(a, b) = scale |a - b|^2 is the Hamming distance of the states, else the squared L2 distance.

    Hamming: `coords` are zeros and ones in float32, so that every cost is a whole number without rounding. Else they
    are float64.
    """

    coords: Float[Tensor, "n axes"]
    scale: float
    is_hamming: bool

    def __len__(self) -> int:
        return len(self.coords)

    def take(self, index: Int[np.ndarray, " m"] | slice) -> "Points":
        return Points(self.coords[index], self.scale, self.is_hamming)


def points(target: AbstractTarget, x: Int[Tensor, "n dim"]) -> Points:
    """Decoded coordinates where the target decodes, else the states themselves.

    For two categories the coordinates are those of x. For more they are one-hot with scale 1/2, the same as one-hot
    divided by sqrt 2: each site that differs adds (1^2 + 1^2) / 2 = 1.
    """
    if x.shape[1] != target.dim or len(x) == 0:
        raise InvalidArgumentError(
            f"points: x has shape {tuple(x.shape)}; give at least one row of {target.dim} sites, as {target.name!r} has"
        )
    x = x.cpu()
    decoded = target.decode(x)
    if decoded is not None:
        return Points(decoded.double(), 1.0, False)
    if target.num_categories == 2:
        return Points(x.float(), 1.0, True)
    return Points(torch.nn.functional.one_hot(x, target.num_categories).flatten(1).float(), 0.5, True)


def cost_rows(a: Points, b: Points, is_upper: bool = False) -> Iterator[tuple[slice, Float[np.ndarray, "rows m"]]]:
    """The matrix c(a_i, b_j) in chunks of rows: float32 whole numbers for Hamming, else float64.

    |a - b|^2 = |a|^2 + |b|^2 - 2 a.b, from coordinates with the mean of b subtracted (but for Hamming, where all is
    exact), so that little cancels. With `is_upper` a chunk begins at the column of its first row, and what is left of
    the diagonal or on it is +inf: for b = a, every pair of different members once.
    """
    shift = 0.0 if a.is_hamming else b.coords.mean(0)
    left, right = a.coords - shift, b.coords - shift
    left_square, right_square = a.scale * left.square().sum(1), b.scale * right.square().sum(1)
    doubled = (-2 * a.scale * right).T.contiguous()
    for group in _spans(0, len(a), max(1, _PRODUCT // len(b))):
        first = group.start if is_upper else 0
        product = torch.addmm(right_square[first:], left[group], doubled[:, first:])
        for rows in _spans(group.start, group.stop, max(1, _CHUNK // len(b))):
            skipped = rows.start - group.start
            cost = product[skipped : rows.stop - group.start, skipped if is_upper else 0 :]
            cost = cost.add_(left_square[rows].unsqueeze(1)).clamp_(min=0)
            if is_upper:
                height = len(cost)
                cost[:, :height].masked_fill_(torch.ones(height, height, dtype=torch.bool).tril(), torch.inf)
            yield rows, cost.numpy()


def _spans(start: int, stop: int, step: int) -> Iterator[slice]:
    return (slice(first, min(first + step, stop)) for first in range(start, stop, step))


def cost_matrix(a: Points, b: Points) -> Float[np.ndarray, "n m"]:
    """All of it, in float32: 1 GiB for 16384 points on either side."""
    cost = np.empty((len(a), len(b)), np.float32)
    for rows, part in cost_rows(a, b):
        cost[rows] = part
    return cost


def matched_cost(a: Points, b: Points) -> Float[np.ndarray, " n"]:
    """c(a_i, b_i), from the differences of coordinates: exactly zero for equal points."""
    return a.scale * (a.coords.double() - b.coords.double()).square().sum(1).numpy()


def state_labels(*parts: Points) -> list[Int[np.ndarray, " n"]]:
    """A number for each point, the same for equal points and for no others."""
    coords = torch.cat([part.coords for part in parts]) + 0.0  # -0.0 becomes 0.0: equal points have equal bytes
    rows = np.ascontiguousarray(coords.to(torch.uint8).numpy() if parts[0].is_hamming else coords.numpy())
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    labels = np.unique(whole, return_inverse=True)[1].astype(np.int64)
    return np.split(labels, np.cumsum([len(part) for part in parts])[:-1])


def merged(a: Points) -> tuple[Points, Float[np.ndarray, " m"]]:
    """The different points of a sample, and the share of the sample that each of them is."""
    _, first, count = np.unique(state_labels(a)[0], return_index=True, return_counts=True)
    return a.take(first), count / len(a)
