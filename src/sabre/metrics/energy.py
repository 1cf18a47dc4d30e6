"""Distances between the laws of the energy, E = -log density, of two samples."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.targets import AbstractTarget

__all__ = ["EnergyDistance", "energies", "energy_distance"]

_CHUNK = 4096
_BINS = 64


class EnergyDistance(NamedTuple):
    """`total_variation` between histograms, in 0..1, on `num_bins` bins; `wasserstein` in nats."""

    total_variation: float
    wasserstein: float
    num_bins: int


def energies(target: AbstractTarget, x: Int[Tensor, "n dim"]) -> Float[Tensor, " n"]:
    """-log density of each state; +inf where it is forbidden."""
    return torch.cat([-target.log_density(part).double() for part in x.split(_CHUNK)])


def energy_distance(energy: Float[Tensor, " n"], true_energy: Float[Tensor, " n"]) -> EnergyDistance:
    """Total variation 1/2 sum_k |p_k - q_k| over bins k, and Wasserstein-1, the mean of |E_(k) - E_true_(k)|, sorted.

    The bins come from the true sample: they end at its quantiles 1/64, 2/64, .., 63/64 (nearest rank from above),
    belong to the bin that they end, and the outermost bins are open. Equal quantiles, as at the lowest level of a
    discrete spectrum, are one end, so that there are up to 64 bins.
    """
    truth = true_energy.sort().values
    rank = (torch.arange(1, _BINS) * len(truth) + _BINS - 1) // _BINS - 1
    ends = truth[rank].unique()
    counts = [torch.bincount(torch.bucketize(e, ends), minlength=len(ends) + 1) for e in (energy, truth)]
    variation = (counts[0].double() / len(energy) - counts[1].double() / len(truth)).abs().sum() / 2
    return EnergyDistance(float(variation), float((energy.sort().values - truth).abs().mean()), len(ends) + 1)
