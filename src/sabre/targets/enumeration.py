"""Truth for small spaces: visit every state."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.noise import NoiseLike

__all__ = ["ENUMERABLE", "ExactEnergy", "enumerated_energy", "enumerated_log_density", "sample_enumerated", "unrank"]

ENUMERABLE = 2**18
"""The largest number of states that is enumerated without being asked."""

_CHUNK = 2**14


class ExactEnergy(NamedTuple):
    """E H and beta^2 Var H of the whole system, where log_density = -beta H."""

    mean_energy: float
    heat_capacity: float


def unrank(rank: Int[Tensor, " batch"], dim: int, num_categories: int) -> Int[Tensor, "batch dim"]:
    """The digits of `rank` in base C, the last site running fastest."""
    place = num_categories ** torch.arange(dim - 1, -1, -1, device=rank.device)
    return rank.unsqueeze(-1) // place % num_categories


def enumerated_log_density(
    log_density: Callable[[Tensor], Tensor], dim: int, num_categories: int
) -> Float[Tensor, " states"]:
    """log density of every state, by rank, in float64."""
    ranks = torch.arange(num_categories**dim)
    return torch.cat([log_density(unrank(part, dim, num_categories)).double() for part in torch.split(ranks, _CHUNK)])


def enumerated_energy(energy: Float[Tensor, " states"], beta: float) -> ExactEnergy:
    """The moments of H under p(x) proportional to exp(-beta H(x)), from H of every state."""
    p = (-beta * energy).softmax(0)
    mean = p @ energy
    return ExactEnergy(float(mean), float(beta**2 * (p @ (energy - mean) ** 2)))


def sample_enumerated(
    log_density: Float[Tensor, " states"], dim: int, num_categories: int, n: int, noise: NoiseLike
) -> Int[Tensor, "n dim"]:
    """Exact samples by inversion of the cumulative sum over all states."""
    return unrank(noise.index(log_density, n), dim, num_categories)
