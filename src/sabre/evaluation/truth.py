"""Samples of the target to compare with: exact where there is a way, long Swendsen-Wang runs on lattices."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from sabre.mcmc import SwendsenWang, run
from sabre.noise import Noise
from sabre.targets import AbstractTarget

__all__ = ["TrueSamples", "has_cluster_moves", "true_samples"]

_MAX_CHAINS = 512
_BURN_IN = 200
_THIN = 25


@dataclass(frozen=True)
class TrueSamples:
    """Samples of the target, and how they were made."""

    x: Int[Tensor, "n dim"]
    source: str


def true_samples(target: AbstractTarget, n: int, seed: int) -> TrueSamples | None:
    """n samples of the target, the same for the same seed; None where nobody knows how to draw them.

    Swendsen-Wang chains start from independent uniform states, run 200 sweeps (some forty autocorrelation times at
    the critical point of a 16 x 16 lattice) and then give one state every 25 sweeps.
    """
    noise = Noise.named(seed, "truth")
    exact = target.sample(n, noise)
    if exact is not None:
        return TrueSamples(exact, "exact")
    if not has_cluster_moves(target):
        return None
    chains = min(n, _MAX_CHAINS)
    draws = -(-n // chains)
    result = run(
        target, SwendsenWang(), num_chains=chains, num_steps=draws * _THIN, burn_in=_BURN_IN, thin=_THIN, noise=noise
    )
    return TrueSamples(result.samples.flatten(0, 1)[:n], f"Swendsen-Wang, {_BURN_IN} sweeps and every {_THIN}th")


def has_cluster_moves(target: AbstractTarget) -> bool:
    """True where Swendsen-Wang applies: pair couplings, none of them negative."""
    return target.pairwise is not None and bool((target.pairwise.coupling >= 0).all())
