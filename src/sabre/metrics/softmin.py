"""The soft minimum over rows of a cost matrix: all of it, or the few pairs that count."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from sabre.metrics.points import Points, cost_rows

__all__ = ["NearPairs", "SoftMin", "near_pairs", "softmin"]

_NEGLIGIBLE = 45.0
"""exp(-45) of a sum is below the rounding of float64."""
_SAMPLE = 16


class SoftMin(NamedTuple):
    """`value_i` = -eps log sum_j w_j exp((g_j - c_ij) / eps), and the mean of c_ij under the terms of that sum."""

    value: Float[np.ndarray, " n"]
    mean_cost: Float[np.ndarray, " n"]


class NearPairs(NamedTuple):
    """Pairs of small slack c_ij - f_i - g_j, row by row. Those left out have a slack of at least `reach`."""

    starts: Int[np.ndarray, " n"]
    row: Int[np.ndarray, " pairs"]
    column: Int[np.ndarray, " pairs"]
    cost: Float[np.ndarray, " pairs"]
    f: Float[np.ndarray, " n"]
    g: Float[np.ndarray, " m"]
    reach: float

    @property
    def transposed(self) -> "NearPairs":
        order = np.lexsort((self.row, self.column))
        column = self.column[order]
        starts = np.searchsorted(column, np.arange(len(self.g)))
        return NearPairs(starts, column, self.row[order], self.cost[order], self.g, self.f, self.reach)

    def softmin(
        self, g: Float[np.ndarray, " m"], log_weight: Float[np.ndarray, " m"], epsilon: float
    ) -> tuple[SoftMin, Bool[np.ndarray, " n"]]:
        """The soft minimum from these pairs, and the rows for which the others are proved not to matter.

        A pair left out has c_ij - g_j >= reach + f_i - max_k (g_k - self.g_k). The weights add up to one, so all such
        pairs together add at most the exponential of minus that, over eps, to the sum.
        """
        exponent = (g[self.column] - self.cost) / epsilon + log_weight[self.column]
        is_empty = self.starts == np.append(self.starts[1:], len(self.row))
        starts = np.minimum(self.starts, len(self.row) - 1)
        high = np.maximum.reduceat(exponent, starts)
        term = np.exp(exponent - high[self.row])
        total = np.add.reduceat(term, starts)
        mean = np.add.reduceat(term * self.cost, starts) / total
        rest = -(self.reach + self.f - (g - self.g).max()) / epsilon
        return SoftMin(-epsilon * (high + np.log(total)), mean), ~is_empty & (rest < high - _NEGLIGIBLE)


def softmin(
    a: Points, b: Points, g: Float[np.ndarray, " m"], log_weight: Float[np.ndarray, " m"], epsilon: float
) -> SoftMin:
    """From all pairs, a chunk of rows at a time."""
    value, mean = np.empty(len(a)), np.empty(len(a))
    shift = g / epsilon + log_weight
    for rows, cost in cost_rows(a, b):
        exponent = cost * (-1.0 / epsilon) + shift
        high = exponent.max(1, keepdims=True)
        exponent -= high
        np.maximum(exponent, -2 * _NEGLIGIBLE, out=exponent)  # exp is slow where it underflows
        term = np.exp(exponent, out=exponent)
        total = term.sum(1)
        value[rows] = -epsilon * (high[:, 0] + np.log(total))
        mean[rows] = np.einsum("ij,ij->i", term, cost) / total
    return SoftMin(value, mean)


def near_pairs(a: Points, b: Points, f: Float[np.ndarray, " n"], g: Float[np.ndarray, " m"], per_row: int) -> NearPairs:
    """The pairs of least slack, about `per_row` for each row on average, by the quantile of a sample of rows."""
    chosen = np.arange(0, len(a), _SAMPLE)
    sample = np.concatenate([cost - f[chosen[rows], None] - g for rows, cost in cost_rows(a.take(chosen), b)]).ravel()
    wanted = per_row * len(chosen)
    reach = float(np.partition(sample, wanted)[wanted]) if wanted < len(sample) else np.inf
    found, costs = [], []
    for rows, cost in cost_rows(a, b):
        place = np.flatnonzero(cost - f[rows, None] - g < reach)
        found.append(place + rows.start * len(b))
        costs.append(cost.ravel()[place].astype(np.float64))
    row, column = np.divmod(np.concatenate(found), len(b))
    return NearPairs(np.searchsorted(row, np.arange(len(a))), row, column, np.concatenate(costs), f, g, reach)
