"""Swendsen-Wang: whole clusters of equal sites change at once."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.mcmc.base import Proposal
from sabre.mcmc.components import connected_components
from sabre.mcmc.heat_bath import heat_bath
from sabre.noise import NoiseLike
from sabre.targets import AbstractTarget, Pairwise

__all__ = ["SwendsenWang", "require_ferromagnet"]


@dataclass(frozen=True)
class SwendsenWang:
    """One sweep for a pairwise target without negative couplings.

    1. Open each edge (i, j) with probability (1 - exp(-coupling)) 1[x_i = x_j].
    2. The connected components of the open edges are the clusters.
    3. A cluster K becomes colour c with probability softmax_c(sum_{i in K} field[i, c]).
    """

    def propose(self, x: Int[Tensor, "chains dim"], target: AbstractTarget, noise: NoiseLike) -> Proposal:
        model = require_ferromagnet(target)
        neighbour, _, edge = (table.to(x.device) for table in model.neighbours)
        open_edge = noise.bernoulli(_bond_probability(x, model))
        root = connected_components(open_edge, neighbour, edge)
        return Proposal(_colour(x, root, model.field.to(x.device), noise).gather(1, root), rejection_free=True)


def require_ferromagnet(target: AbstractTarget) -> Pairwise:
    """The couplings and fields of the target, if Swendsen-Wang can sample it; an error that says why if it cannot."""
    model = target.pairwise
    if model is None:
        raise InvalidArgumentError(
            f"Swendsen-Wang needs a target with pairwise couplings, and {target.name!r} has none; use 'gibbs'"
        )
    if (model.coupling < 0).any():
        raise InvalidArgumentError(
            f"Swendsen-Wang needs couplings >= 0, and {target.name!r} has {model.coupling.min().item():g}; use 'gibbs'"
        )
    return model


def _bond_probability(x: Int[Tensor, "chains dim"], model: Pairwise) -> Float[Tensor, "chains edges"]:
    """(1 - exp(-coupling)) 1[x_i = x_j]"""
    edges = model.edges.to(x.device)
    equal = x.index_select(1, edges[:, 0]) == x.index_select(1, edges[:, 1])
    return equal * -torch.expm1(-model.coupling.double().to(x.device))


def _colour(
    x: Int[Tensor, "chains dim"],
    root: Int[Tensor, "chains dim"],
    field: Float[Tensor, "dim categories"],
    noise: NoiseLike,
) -> Int[Tensor, "chains dim"]:
    """A colour for the cluster of each root; what other sites hold means nothing.

    Every site draws, so that the number of draws does not depend on the clusters.
    """
    num_categories = field.shape[1]
    if (field == field[:, :1]).all():
        return noise.integers(num_categories, x.shape)
    index = root.unsqueeze(-1).expand(-1, -1, num_categories)
    summed = torch.zeros(index.shape, dtype=torch.float64, device=x.device)
    summed.scatter_add_(1, index, field.double().expand(len(x), -1, -1))
    return heat_bath(summed, x, noise)
