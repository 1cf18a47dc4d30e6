"""The assignment problem on a full cost matrix, solved on the few pairs that matter and certified on all."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

__all__ = ["Assignment", "solve_assignment"]

_SMALL = 1024
"""Up to this size scipy's dense solver is fast."""
_COARSER = 4
_PER_LINE = 20
"""Candidates per row and per column to begin with, and at most to add to them per round."""
_CHUNK = 2**20
_ROUNDING = 1e-11
_WEYL = (0.7548776662466927, 0.5698402909980532)
"""i and j times these, added, modulo 1, fill the unit interval evenly along rows and along columns."""


class Assignment(NamedTuple):
    """Row i goes to `column[i]`. u_i + v_j <= c_ij + `slack` for all pairs, with equality (slack 0) on those assigned.

    So no permutation costs less than this one does by more than n times `slack`.
    """

    column: Int[np.ndarray, " n"]
    u: Float[np.ndarray, " n"]
    v: Float[np.ndarray, " n"]
    slack: float


def solve_assignment(cost: Float[np.ndarray, "n n"]) -> Assignment:
    """The permutation of least total cost, with the potentials that prove it.

    1. Solve for every fourth row and column. The potentials, extended by u_i = min_j (c_ij - v_j) and
       v_j = min_i (c_ij - u_i), are nearly right for all.
    2. Candidates are the pairs of least reduced cost c_ij - u_i - v_j, and (i, i), so that an assignment exists.
    3. Find the best assignment among candidates, and its potentials.
    4. Pairs of the full matrix with negative reduced cost become candidates; repeat from 3 until there are none.

    Then the potentials are feasible for the full problem and tight on the assignment, so by duality no permutation
    costs less. Every round adds pairs, so the rounds end.
    """
    n = len(cost)
    if n <= _SMALL:
        column = linear_sum_assignment(cost)[1].astype(np.int64)
        u, v = _potentials(np.arange(n * n), cost.reshape(-1).astype(np.float64), column, np.zeros(n))
        return Assignment(column, u, v, float((u[:, None] + v - cost).max(initial=0.0)))
    u, v = _extended(cost, solve_assignment(np.ascontiguousarray(cost[::_COARSER, ::_COARSER])).v)
    pairs = np.union1d(_lowest(np.inf, cost, u, v), np.arange(n) * (n + 1))
    tolerance = _ROUNDING * float(cost.max())
    while True:
        values = cost.reshape(-1)[pairs].astype(np.float64)
        column = _best_among(pairs, values - u[pairs // n] - v[pairs % n], n)
        u, v = _potentials(pairs, values, column, v)
        grown = np.union1d(pairs, _lowest(-_float32_rounding(cost, u, v), cost, u, v))
        if len(grown) == len(pairs):
            worse = _violations(tolerance, cost, u, v)
            grown = np.union1d(pairs, worse)
            if len(grown) == len(pairs):
                violation = u[worse // n] + v[worse % n] - cost.reshape(-1)[worse]
                return Assignment(column, u, v, float(violation.max(initial=tolerance)))
        pairs = grown


def _extended(
    cost: Float[np.ndarray, "n n"], coarse: Float[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Potentials for all from those of every fourth column: feasible, and tight somewhere in each row and column."""
    n = len(cost)
    u, v = np.empty(n), np.full(n, np.inf)
    known = coarse.astype(np.float32)
    for rows in _chunks(n):
        u[rows] = (cost[rows, ::_COARSER] - known).min(1)
        v = np.minimum(v, (cost[rows] - u[rows, None].astype(np.float32)).min(0))
    for rows in _chunks(n):
        u[rows] = (cost[rows] - v.astype(np.float32)).min(1)
    return u, v


def _best_among(pairs: Int[np.ndarray, " k"], reduced: Float[np.ndarray, " k"], n: int) -> Int[np.ndarray, " n"]:
    """The best assignment by pairs (sorted, row * n + column) only; weights are shifted, since scipy wants no zeros."""
    low, high = reduced.min(), reduced.max()
    weight = reduced - low + max(high - low, 1.0) * 2.0**-10
    starts = np.searchsorted(pairs, np.arange(n + 1) * n)
    graph = csr_array((weight, (pairs % n).astype(np.int32), starts.astype(np.int32)), shape=(n, n))
    return min_weight_full_bipartite_matching(graph)[1].astype(np.int64)


def _potentials(
    pairs: Int[np.ndarray, " k"],
    values: Float[np.ndarray, " k"],
    column: Int[np.ndarray, " n"],
    v: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Potentials that are tight on the best assignment and feasible on the pairs: v is the largest such one below `v`.

    Tightness at (i, column[i]) turns feasibility at (i, j) into v_j <= v_column[i] + c_ij - c_i,column[i]: shortest
    paths from the given values, found by relaxing all pairs at once (Bellman and Ford). An optimal assignment has no
    negative cycle.
    """
    n = len(v)
    order = np.argsort(pairs % n, kind="stable")
    row, starts = pairs[order] // n, np.searchsorted((pairs % n)[order], np.arange(n))
    assigned = values[np.searchsorted(pairs, np.arange(n) * n + column)]
    length, source = values[order] - assigned[row], column[row]
    rounding = _ROUNDING * float(values.max(initial=0.0))
    for _ in range(n):
        relaxed = np.minimum(v, np.minimum.reduceat(v[source] + length, starts))
        if (relaxed >= v - 0.1 * rounding).all():
            break
        v = relaxed
    return assigned - v[column], v


def _lowest(
    level: float, cost: Float[np.ndarray, "n n"], u: Float[np.ndarray, " n"], v: Float[np.ndarray, " n"]
) -> Int[np.ndarray, " k"]:
    """The pairs of least reduced cost in each row and in each column, at most a few of each, that are below `level`."""
    n = len(cost)
    u32, v32 = u.astype(np.float32), v.astype(np.float32)
    found = []
    for part in _chunks(n):
        i, j = _lowest_of_rows(level, part.start, cost[part] - v32 - u32[part, None])
        found.append(i * n + j)
        j, i = _lowest_of_rows(level, part.start, cost.T[part] - u32 - v32[part, None])
        found.append(i * n + j)
    return np.concatenate(found)


def _lowest_of_rows(
    level: float, first: int, reduced: Float[np.ndarray, "rows n"]
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Row (counted from `first`) and column of the lowest entries of each row.

    Ties at the last place are thinned evenly over rows and columns: equal points, of which there may be thousands,
    get partners in a regular pattern and not all the same ones.
    """
    threshold = np.minimum(np.partition(reduced, _PER_LINE, axis=1)[:, _PER_LINE], level)
    row, column = np.nonzero(reduced <= threshold[:, None])
    share = _PER_LINE / np.bincount(row, minlength=len(reduced))[row]
    is_below = reduced[row, column] < threshold[row]
    keep = is_below | (((row + first) * _WEYL[0] + column * _WEYL[1]) % 1 < share)
    return row[keep] + first, column[keep]


def _violations(
    tolerance: float, cost: Float[np.ndarray, "n n"], u: Float[np.ndarray, " n"], v: Float[np.ndarray, " n"]
) -> Int[np.ndarray, " k"]:
    """All pairs with c_ij - u_i - v_j < -tolerance: float32 says which ones may be, float64 which are."""
    n = len(cost)
    band = _float32_rounding(cost, u, v)
    u32, v32 = u.astype(np.float32), v.astype(np.float32)
    found = []
    for rows in _chunks(n):
        pair = np.flatnonzero(cost[rows] - v32 - u32[rows, None] <= band) + rows.start * n
        found.append(pair[cost.reshape(-1)[pair] - u[pair // n] - v[pair % n] < -tolerance])
    return np.concatenate(found)


def _float32_rounding(cost: Float[np.ndarray, "n n"], u: Float[np.ndarray, " n"], v: Float[np.ndarray, " n"]) -> float:
    """More than the error of a reduced cost in float32, with its potentials rounded to float32 as well."""
    return 2.0**-22 * float(cost.max() + np.abs(u).max() + np.abs(v).max())


def _chunks(n: int) -> Iterator[slice]:
    step = max(1, _CHUNK // n)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
