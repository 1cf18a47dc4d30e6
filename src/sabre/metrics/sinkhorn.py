"""Entropy-regularised transport between two samples, as far as a number of iterations brings it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sabre.errors import InvalidArgumentError
from sabre.metrics.points import Points, merged
from sabre.metrics.softmin import NearPairs, near_pairs, softmin

__all__ = ["Sinkhorn", "sinkhorn"]

_PER_ROW = 64
_STALE = 0.02
"""Near pairs are looked for again when they miss more than this share of the points."""
_USEFUL = 100.0
"""Near pairs are of no use where they reach less far than so many times epsilon."""
_TOLERANCE = 1e-3
_ROUNDING = 1e-12


class Sinkhorn(NamedTuple):
    """`cost` = sum_ij P_ij c_ij; `residual` = sum_i |sum_j P_ij - a_i|, the violation of the marginal of a.

    The exact transport cost is at most cost + `shortfall`; `converged` says that this is at most 1e-3 of the cost.
    """

    cost: float
    residual: float
    shortfall: float
    converged: bool


def sinkhorn(a: Points, b: Points, epsilon: float = 1e-3, num_iterations: int = 100) -> Sinkhorn:
    """Sinkhorn's iterations in the log domain, between the uniform laws on the points of a and on those of b.

    With f = g = 0 at first, each iteration sets f_i = softmin_i(g) and then g_j = softmin_j(f), where
    softmin_i(g) = -eps log sum_j b_j exp((g_j - c_ij) / eps), so that in P_ij = a_i b_j exp((f_i + g_j - c_ij) / eps)
    first the rows, then the columns add up to their weights. After the last one the columns do, the rows not quite.

    **Shortfall.** Scale down the rows that hold too much and add a coupling of what is then missing on both sides,
    residual / 2 in mass: a coupling of the two samples that costs at most cost + residual / 2 * max c, and no less
    than the exact transport.

    **Equal points** become one with their summed weight. This changes nothing: f_i depends on i through c_i only, so
    copies have equal potentials after every update, and a sum over copies is one term with their summed weight.
    """
    if not epsilon > 0 or num_iterations < 1:
        raise InvalidArgumentError(
            f"sinkhorn: epsilon={epsilon} and num_iterations={num_iterations}; give an epsilon above 0 and at least 1"
        )
    (a, weight_a), (b, weight_b) = merged(a), merged(b)
    f, g = np.zeros(len(a)), np.zeros(len(b))
    rows, columns = _Side(a, b, np.log(weight_b), epsilon), _Side(b, a, np.log(weight_a), epsilon)
    is_sparse = True
    for _ in range(num_iterations):
        f, _, missed = rows.softmin(g)
        g, mean_cost, missed_too = columns.softmin(f)
        if is_sparse and missed + missed_too > _STALE * (len(a) + len(b)):
            rows.near = near_pairs(a, b, f, g, _PER_ROW)
            columns.near = rows.near.transposed
            is_sparse = rows.near.reach > _USEFUL * epsilon
    ahead = rows.softmin(g)[0]
    residual = float((weight_a * np.abs(np.exp((f - ahead) / epsilon) - 1)).sum())
    cost = float((weight_b * mean_cost).sum())
    shortfall = residual / 2 * _largest_cost(a, b)
    return Sinkhorn(cost, residual, shortfall, shortfall <= _TOLERANCE * cost or residual <= _ROUNDING)


class _Side:
    """The soft minimum for all points of `a`: from near pairs where these are proved to suffice, else from all."""

    def __init__(self, a: Points, b: Points, log_weight: Float[np.ndarray, " m"], epsilon: float) -> None:
        self.a, self.b, self.log_weight, self.epsilon = a, b, log_weight, epsilon
        self.near: NearPairs | None = None

    def softmin(self, g: Float[np.ndarray, " m"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], int]:
        """Its values, the mean costs, and for how many points all pairs had to be looked at."""
        if self.near is None:
            return *softmin(self.a, self.b, g, self.log_weight, self.epsilon), len(self.a)
        (value, mean), is_proved = self.near.softmin(g, self.log_weight, self.epsilon)
        missed = np.flatnonzero(~is_proved)
        if len(missed):
            value[missed], mean[missed] = softmin(self.a.take(missed), self.b, g, self.log_weight, self.epsilon)
        return value, mean, len(missed)


def _largest_cost(a: Points, b: Points) -> float:
    """An upper bound of all costs: no two points are farther apart than the two largest distances from one centre."""
    centre = b.coords.double().mean(0)
    radius = sum(float((part.coords.double() - centre).square().sum(1).max().sqrt()) for part in (a, b))
    return a.scale * radius**2
