"""The exact median of very many distances, without keeping them."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from sabre.metrics.points import Points, cost_rows

__all__ = ["median_of_pairs"]

_SHIFTS = (44, 24, 4, 0)
_KEPT = 2**24


def median_of_pairs(a: Points, b: Points) -> float:
    """The lower median of c over all pairs of different members of the pooled sample.

    As 64-bit integers, the bits of numbers from 0 on are in the order of the numbers. The costs are counted by their
    leading bits, then by more bits among those that agree with the median so far, until few enough are left to sort.
    """
    n = len(a) + len(b)
    rank = (n * (n - 1) // 2 - 1) // 2
    leading, known = 0, 63
    for shift in _SHIFTS:
        size = 1 << (known - shift)
        counts = np.zeros(size, dtype=np.int64)
        for bits in _bits_of_pairs(a, b, leading, known):
            counts += np.bincount((bits >> shift) & (size - 1), minlength=size)
        reached = counts.cumsum()
        chosen = int(np.searchsorted(reached, rank, side="right"))
        rank -= int(reached[chosen] - counts[chosen])
        leading, known = (leading << (known - shift)) | chosen, shift
        if counts[chosen] <= _KEPT and shift:
            left = np.concatenate(list(_bits_of_pairs(a, b, leading, known)))
            return float(np.partition(left, rank)[rank : rank + 1].view(np.float64)[0])
    return float(np.array([leading]).view(np.float64)[0])


def _bits_of_pairs(a: Points, b: Points, leading: int, known: int) -> Iterator[Int[np.ndarray, " k"]]:
    """The bits of the costs whose bits above the `known`-th are `leading`; with all pairs come some of cost +inf."""
    for left, right, is_within in ((a, a, True), (b, b, True), (a, b, False)):
        for _, cost in cost_rows(left, right, is_within):
            bits = np.abs(cost).astype(np.float64, copy=False).ravel().view(np.int64)
            yield bits if known == 63 else bits[bits >> known == leading]
