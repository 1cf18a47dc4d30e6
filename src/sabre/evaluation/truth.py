"""Samples of the target to compare with: exact where there is a way, long Swendsen-Wang runs on lattices."""

import functools
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.mcmc import ChainResult, SwendsenWang, run
from sabre.metrics import Progress
from sabre.noise import Noise
from sabre.storage import Kept, kept_or_made
from sabre.targets import AbstractTarget

__all__ = ["TrueSamples", "has_cluster_moves", "true_samples"]

_MAX_CHAINS = 512
_FEWEST_DRAWS = 8
_BURN_IN = 200
_THIN = 25
_MOST_DOUBLINGS = 4
_LARGEST_R_HAT = 1.01
_LARGEST_TIME = 2.0
_RECIPE = 1
"""Part of the key of the cache: to be raised whenever the same arguments give other samples."""


@dataclass(frozen=True)
class TrueSamples:
    """Samples of the target, and how they were made. `diagnostics` are those of the chains: empty if exact."""

    x: Int[Tensor, "n dim"]
    source: str
    diagnostics: dict[str, float]


def true_samples(target: AbstractTarget, n: int, seed: int, progress: Progress | None = None) -> TrueSamples | None:
    """n samples of the target, the same for the same seed; None where nobody knows how to draw them.

    Swendsen-Wang chains start from independent uniform states, run 200 sweeps (some thirty autocorrelation times at
    the critical point of a 16 x 16 lattice) and then give one state every 25 sweeps, at least eight each. The split
    R-hat and the autocorrelation time of the log densities are checked: where the chains do not agree, all is made
    again with twice the sweeps. Samples of named targets are kept in the cache on disk.
    """
    if target.spec is None or target.imported_from is not None:
        return _made(target, n, seed, progress)
    key = {"target": target.spec, "n": n, "seed": seed, "recipe": _RECIPE}
    kept = kept_or_made("truth", key, lambda: _packed(_made(target, n, seed, progress), target))
    if not kept.tensors:
        return None
    return TrueSamples(kept.tensors["x"].long(), kept.facts["source"], kept.facts["diagnostics"])


def _packed(truth: TrueSamples | None, target: AbstractTarget) -> Kept:
    if truth is None:
        return Kept({}, {})
    x = truth.x.to(torch.uint8) if target.num_categories <= 256 else truth.x
    return Kept({"x": x}, {"source": truth.source, "diagnostics": truth.diagnostics})


def _made(target: AbstractTarget, n: int, seed: int, progress: Progress | None) -> TrueSamples | None:
    exact = target.sample(n, Noise.named(seed, "truth"))
    if exact is not None:
        return TrueSamples(exact, "exact", {})
    return _from_chains(target, n, seed, progress) if has_cluster_moves(target) else None


def _from_chains(target: AbstractTarget, n: int, seed: int, progress: Progress | None = None) -> TrueSamples:
    """Swendsen-Wang, with twice the sweeps until the chains agree."""
    chains = max(1, min(_MAX_CHAINS, n // _FEWEST_DRAWS))
    draws = max(_FEWEST_DRAWS, -(-n // chains))
    for doubling in range(_MOST_DOUBLINGS + 1):
        burn_in, thin = _BURN_IN << doubling, _THIN << doubling
        began = time.monotonic()
        result = run(
            target,
            SwendsenWang(),
            num_chains=chains,
            num_steps=draws * thin,
            burn_in=burn_in,
            thin=thin,
            noise=Noise.named(seed, "truth"),
            progress=None if progress is None else functools.partial(progress, "true samples"),
        )
        if _agree(result, chains, draws):
            break
    else:
        print(f"warning: the chains behind the true samples of {target!r} do not agree", file=sys.stderr)
    facts: dict[str, Any] = {
        "r_hat": result.r_hat,
        "autocorrelation_time": result.autocorrelation_time,
        "effective_samples": result.effective_samples,
        "chains": chains,
        "seconds": time.monotonic() - began,
    }
    source = f"Swendsen-Wang, {burn_in} sweeps and every {thin}th"
    return TrueSamples(result.samples.flatten(0, 1)[:n], source, facts)


def _agree(result: ChainResult, chains: int, draws: int) -> bool:
    """R-hat within four of its standard errors, 1 / (draws sqrt(chains)) for independent draws, of 1.01."""
    spread = 4 / (draws * chains**0.5)
    return result.r_hat < _LARGEST_R_HAT + spread and result.autocorrelation_time < _LARGEST_TIME


def has_cluster_moves(target: AbstractTarget) -> bool:
    """True where Swendsen-Wang applies: pair couplings, none of them negative."""
    return target.pairwise is not None and bool((target.pairwise.coupling >= 0).all())
