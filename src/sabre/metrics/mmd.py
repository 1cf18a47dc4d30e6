"""Maximum mean discrepancy with a Gaussian kernel and the median heuristic."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sabre.errors import InvalidArgumentError
from sabre.metrics.points import Points, cost_rows
from sabre.metrics.selection import median_of_pairs

__all__ = ["MMD", "maximum_mean_discrepancy"]


class MMD(NamedTuple):
    """`biased` is the root of the V-statistic, `unbiased_square` the U-statistic of the square."""

    biased: float
    unbiased_square: float
    bandwidth: float


def maximum_mean_discrepancy(a: Points, b: Points) -> MMD:
    """MMD^2 = E k(a, a') + E k(b, b') - 2 E k(a, b) for k(x, y) = exp(-c(x, y) / (2 h^2)).

    h^2 is the median of c over all pairs of different members of the pooled sample (the lower of two middle ones), so
    h is the median distance. The V-statistic averages over all pairs, with those of a point and itself; the
    U-statistic leaves these out. Where h = 0 the kernel is its limit, 1 for equal points and 0 for others.
    """
    if min(len(a), len(b)) < 2:
        raise InvalidArgumentError(f"maximum_mean_discrepancy: {len(a)} and {len(b)} points; give two or more of each")
    pairs = ((a, a, True), (b, b, True), (a, b, False))
    if a.is_hamming:
        counts = [_counts(left, right, is_within) for left, right, is_within in pairs]
        median = _median_of_counts(counts[0] + counts[1] + counts[2])
        kernel = _kernel(np.arange(len(counts[0]), dtype=np.float64), median)
        of_a, of_b, between = (float(count @ kernel) for count in counts)
    else:
        median = median_of_pairs(a, b)
        of_a, of_b, between = (_kernel_sum(left, right, is_within, median) for left, right, is_within in pairs)
    n, m = len(a), len(b)
    cross = 2 * between / (n * m)
    biased = (n + 2 * of_a) / n**2 + (m + 2 * of_b) / m**2 - cross
    unbiased = 2 * of_a / (n * (n - 1)) + 2 * of_b / (m * (m - 1)) - cross
    return MMD(math.sqrt(max(0.0, biased)), unbiased, math.sqrt(median))


def _kernel(cost: Float[np.ndarray, "*shape"], median: float) -> Float[np.ndarray, "*shape"]:
    return np.exp(cost / (-2 * median)) if median > 0 else (cost == 0).astype(np.float64)


def _kernel_sum(a: Points, b: Points, is_within: bool, median: float) -> float:
    """Over all pairs; within a sample, over pairs of different members, each once."""
    return math.fsum(float(_kernel(cost, median).sum()) for _, cost in cost_rows(a, b, is_within))


def _counts(a: Points, b: Points, is_within: bool) -> Int[np.ndarray, " costs"]:
    """How many of these pairs have cost 0, 1, 2, .. : all that the kernel needs to know about Hamming distances."""
    beyond = a.coords.shape[1] + 1
    counts = np.zeros(beyond + 1, dtype=np.int64)
    for _, cost in cost_rows(a, b, is_within):
        counts += np.bincount(np.minimum(cost, beyond).astype(np.int64).ravel(), minlength=beyond + 1)
    return counts[:beyond]


def _median_of_counts(counts: Int[np.ndarray, " costs"]) -> float:
    """The lower median of numbers 0, 1, 2, .. of which there are so many."""
    return float(np.searchsorted(counts.cumsum(), (counts.sum() - 1) // 2, side="right"))
