"""Truth for pairwise models of small treewidth: sum the sites out one by one, draw them in the opposite order."""

import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import TargetError
from sabre.noise import NoiseLike
from sabre.targets.pairwise import Pairwise

__all__ = ["LARGEST_TABLE", "EliminationOrder", "elimination_log_z", "elimination_sample", "treewidth_order"]

LARGEST_TABLE = 2**20
"""The largest number of entries, C^(width + 1), of a table that is made unasked."""

_LARGEST_TOTAL = 2**25
"""The largest number of entries of all tables of a model together: samples need them all at once."""


class EliminationOrder(NamedTuple):
    """The sites in the order in which they are summed out, and the largest number of neighbours that one has then."""

    sites: tuple[int, ...]
    width: int


class _Table(NamedTuple):
    """The log of what depends on a site, given the sites after it: one axis for each of `scope`, its own the last.

    `scope` holds positions in the order, the latest first, so that axes of different tables are in the same order.
    """

    scope: tuple[int, ...]
    value: Float[Tensor, "..."]


def treewidth_order(pairwise: Pairwise) -> EliminationOrder | None:
    """An order of small width; None as soon as a table would exceed `LARGEST_TABLE`, or all of them `_LARGEST_TOTAL`.

    1. Take the site with the fewest neighbours and, of these, the fewest pairs of neighbours that are not neighbours.
    2. Make all its neighbours neighbours of each other, and remove it; repeat.
    """
    around = [set(row) for row in _couplings(pairwise)]
    categories = max(pairwise.num_categories, 2)
    most = int(math.log(LARGEST_TABLE) / math.log(categories) + 1e-9) - 1
    score = [_score(around, site, most) for site in range(pairwise.dim)]
    queue = [(*score[site], site) for site in range(pairwise.dim)]
    heapq.heapify(queue)
    sites, width, total, is_done = [], 0, 0, [False] * pairwise.dim
    while queue:
        degree, fill, site = heapq.heappop(queue)
        if is_done[site] or (degree, fill) != score[site]:
            continue  # an entry that a later one has replaced
        total += categories ** (degree + 1) if degree <= most else _LARGEST_TOTAL + 1
        if total > _LARGEST_TOTAL:
            return None
        is_done[site], width = True, max(width, degree)
        sites.append(site)
        for neighbour in around[site]:
            around[neighbour] |= around[site]
            around[neighbour] -= {site, neighbour}
        for neighbour in around[site]:
            score[neighbour] = _score(around, neighbour, most)
            heapq.heappush(queue, (*score[neighbour], neighbour))
    return EliminationOrder(tuple(sites), width)


def elimination_log_z(pairwise: Pairwise, order: EliminationOrder | None = None) -> float | None:
    """log sum_x exp(pairwise.log_density(x)); None where `treewidth_order`, which is asked if need be, gives up.

    With the tables t_v(x_v, x_N) of site v and its later neighbours N, the message of v is log sum_{x_v} exp t_v, a
    part of the table of the first of N; those of sites without later neighbours add up to log Z.
    """
    order = order or treewidth_order(pairwise)
    if order is None:
        return None
    loops = float(pairwise.coupling[pairwise.edges[:, 0] == pairwise.edges[:, 1]].double().sum())
    ends = (float(value.logsumexp(-1)) for scope, value in _tables(pairwise, order) if len(scope) == 1)
    return sum(ends, start=float(pairwise.constant) + loops)


def elimination_sample(
    pairwise: Pairwise, n: int, noise: NoiseLike, order: EliminationOrder | None = None
) -> Int[Tensor, "n dim"] | None:
    """n independent exact samples; None where `treewidth_order`, which is asked if need be, gives up.

    From the last site to the first: x_v is c with probability softmax_c t_v(c, x_N), with the tables above.
    """
    order = order or treewidth_order(pairwise)
    if order is None:
        return None
    tables = list(_tables(pairwise, order))
    if any(bool(torch.isneginf(value).all()) for _, value in tables):
        raise TargetError("the model forbids all states; allow some of them")
    categories = pairwise.num_categories
    x = torch.zeros(n, pairwise.dim, dtype=torch.long)
    for scope, value in reversed(tables):
        place = categories ** torch.arange(len(scope) - 2, -1, -1)
        given = x[:, [order.sites[position] for position in scope[:-1]]] @ place
        x[:, order.sites[scope[-1]]] = noise.categorical(value.reshape(-1, categories)[given]).cpu()
    return x


def _couplings(pairwise: Pairwise) -> list[dict[int, float]]:
    """coupling of each site to each of its neighbours; those of double edges are summed, zeros left out."""
    around: list[dict[int, float]] = [{} for _ in range(pairwise.dim)]
    for (i, j), coupling in zip(pairwise.edges.tolist(), pairwise.coupling.tolist(), strict=True):
        if i != j:
            around[i][j] = around[j][i] = around[i].get(j, 0.0) + coupling
    return [{j: coupling for j, coupling in row.items() if coupling != 0} for row in around]


def _score(around: list[set[int]], site: int, most: int) -> tuple[int, int]:
    """(neighbours, twice the pairs of them that are not neighbours); no pairs are counted where the order must end."""
    degree = len(around[site])
    if degree > most:
        return degree, 0
    return degree, degree * (degree - 1) - sum(len(around[j] & around[site]) for j in around[site])


def _tables(pairwise: Pairwise, order: EliminationOrder) -> Iterator[_Table]:
    """The table of each site in turn: its field, its couplings to later sites, and the messages that reach it."""
    categories = pairwise.num_categories
    position = {site: p for p, site in enumerate(order.sites)}
    couplings = _couplings(pairwise)
    field = pairwise.field.double().cpu()
    inbox: list[list[_Table]] = [[] for _ in order.sites]
    for p, site in enumerate(order.sites):
        parts = [_Table((p,), field[site])]
        for other, coupling in couplings[site].items():
            if position[other] > p:
                same = torch.eye(categories, dtype=torch.float64)
                parts.append(_Table((position[other], p), coupling * same))
        parts += inbox[p]
        inbox[p] = []
        scope = tuple(sorted({q for part in parts for q in part.scope}, reverse=True))
        shapes = [[categories if q in part.scope else 1 for q in scope] for part in parts]
        value = torch.zeros([categories] * len(scope), dtype=torch.float64)
        for part, shape in zip(parts, shapes, strict=True):
            value += part.value.reshape(shape)
        yield _Table(scope, value)
        if len(scope) > 1:
            inbox[scope[-2]].append(_Table(scope[:-1], value.logsumexp(-1)))
