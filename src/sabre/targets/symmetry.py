"""Bijections of the state space: permutations of the sites, and permutations of the categories."""

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.targets.base import Symmetry

__all__ = ["permute_categories", "permute_sites"]


def permute_sites(name: str, source: Int[Tensor, " dim"]) -> Symmetry:
    """y_i = x_source(i)."""
    return Symmetry(name, lambda x: x[:, source.to(x.device)])


def permute_categories(name: str, image: list[int], sites: Int[Tensor, " sites"] | None = None) -> Symmetry:
    """y_i = image(x_i) at the given sites (all of them by default); a mask token C stays what it is."""
    table = torch.tensor([*image, len(image)])

    def apply(x: Int[Tensor, "batch dim"]) -> Int[Tensor, "batch dim"]:
        relabelled = table.to(x.device)[x]
        if sites is None:
            return relabelled
        chosen = torch.zeros(x.shape[1], dtype=torch.bool, device=x.device)
        chosen[sites.to(x.device)] = True
        return torch.where(chosen, relabelled, x)

    return Symmetry(name, apply)
