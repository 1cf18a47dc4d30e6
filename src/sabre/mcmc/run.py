"""Many chains at once, from the start to their samples and diagnostics."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.mcmc.accept import init, step
from sabre.mcmc.autocorrelation import integrated_time
from sabre.mcmc.base import ChainState, Kernel
from sabre.mcmc.convergence import split_r_hat
from sabre.mcmc.registry import make_kernel
from sabre.noise import Noise, NoiseLike
from sabre.targets import AbstractTarget

__all__ = ["ChainResult", "advance", "run"]

_FEWEST_FOR_R_HAT = 4


@dataclass(frozen=True)
class ChainResult:
    """Samples of `run` and how far to trust them.

    `acceptance` is the mean acceptance probability. `autocorrelation_time` is the integrated one of the log density, in
    kept steps; `effective_samples` is the number of independent samples that `samples` are worth by it, at least one
    per chain where the chains started independently. `r_hat` is the split R-hat of the log density (NaN for fewer than
    four kept steps). `num_evaluations` counts log densities, over all chains and with the burn-in.
    """

    samples: Int[Tensor, "kept chains dim"]
    log_density: Float[Tensor, "kept chains"]
    final: ChainState
    acceptance: float
    autocorrelation_time: float
    effective_samples: float
    r_hat: float
    num_evaluations: int


def advance(
    kernel: Kernel, state: ChainState, target: AbstractTarget, noise: NoiseLike, steps: int
) -> tuple[ChainState, float]:
    """`steps` steps of every chain, and the mean acceptance probability of them."""
    _at_least("advance", "steps", steps, 1)
    state, acceptance, _ = _walk(kernel, state, target, noise, steps)
    return state, float(acceptance) / steps


def run(
    target: AbstractTarget,
    kernel: Kernel | str,
    *,
    num_chains: int = 64,
    num_steps: int = 1000,
    burn_in: int = 0,
    thin: int = 1,
    seed: int = 0,
    x: Int[Tensor, "chains dim"] | None = None,
    noise: NoiseLike | None = None,
    keep: Literal["all", "last"] = "all",
    progress: Callable[[float], None] | None = None,
) -> ChainResult:
    """Sample the target with parallel chains.

    After `burn_in` steps, each chain makes `num_steps` and keeps every `thin`-th state; keep="last" holds on to the
    very last of these only. The chains begin at `x` (one row per chain, instead of `num_chains`), else uniformly. The
    draws come from `noise`, else from a stream of their own for this `seed`. `progress` is told the share that is done.
    """
    _check_target(target)
    kernel = make_kernel(kernel) if isinstance(kernel, str) else kernel
    _check_lengths(target, num_chains, num_steps, burn_in, thin, keep)
    noise = Noise.named(seed, "mcmc", "cpu" if x is None else x.device) if noise is None else noise
    are_independent = x is None
    if x is None:
        x = noise.integers(target.num_categories, (num_chains, target.dim))
    state = init(_checked_start(x, target), target)
    state, _, evaluations = _walk(kernel, state, target, noise, burn_in)
    _check_allowed(state)

    num_kept = num_steps // thin
    samples = state.x.new_empty((num_kept if keep == "all" else 1, *state.x.shape))
    log_density = state.log_density.new_empty((num_kept, len(state.x)))
    accepted = state.log_density.new_zeros(())
    for k in range(num_kept):
        state, acceptance, cost = _walk(kernel, state, target, noise, thin)
        samples[k if keep == "all" else 0] = state.x
        log_density[k] = state.log_density
        accepted += acceptance
        evaluations += cost
        if progress is not None:
            progress((k + 1) / num_kept)

    tau = integrated_time(log_density)
    r_hat = split_r_hat(log_density) if num_kept >= _FEWEST_FOR_R_HAT else math.nan
    log_density = log_density if keep == "all" else log_density[-1:].clone()
    return ChainResult(
        samples=samples,
        log_density=log_density,
        final=state,
        acceptance=float(accepted) / (num_kept * thin),
        autocorrelation_time=tau,
        r_hat=r_hat,
        effective_samples=max(log_density.numel() / tau, float(log_density.shape[1] if are_independent else 1)),
        num_evaluations=(1 + evaluations) * log_density.shape[1],
    )


def _walk(
    kernel: Kernel, state: ChainState, target: AbstractTarget, noise: NoiseLike, steps: int
) -> tuple[ChainState, Float[Tensor, ""], int]:
    """The state after `steps` steps, the summed mean acceptance, and the log densities evaluated per chain."""
    acceptance = state.log_density.new_zeros(())
    evaluations = 0
    for _ in range(steps):
        state, info = step(kernel, state, target, noise)
        acceptance += info.acceptance.mean()
        evaluations += info.num_evaluations
    return state, acceptance, evaluations


def _at_least(where: str, name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidArgumentError(f"{where}: {name} is {value}; give at least {least}")


def _check_target(target: object) -> None:
    if not isinstance(target, AbstractTarget):
        raise InvalidArgumentError(
            f"run: target is a {type(target).__name__}; wrap a function as sabre.Target(f, dim=..., num_categories=...)"
        )


def _check_lengths(target: AbstractTarget, num_chains: int, num_steps: int, burn_in: int, thin: int, keep: str) -> None:
    _at_least("run", "num_chains", num_chains, 1)
    _at_least("run", "thin", thin, 1)
    _at_least("run", "num_steps", num_steps, thin)
    _at_least("run", "burn_in", burn_in, 0)
    _at_least("run", "target.num_categories", target.num_categories, 2)
    if keep not in ("all", "last"):
        raise InvalidArgumentError(f"run: keep is {keep!r}; give 'all' or 'last'")


def _checked_start(x: Int[Tensor, "..."], target: AbstractTarget) -> Int[Tensor, "chains dim"]:
    """The start as int64 rows, or an error that says what is wrong with it."""
    if x.ndim != 2 or len(x) == 0 or x.shape[1] != target.dim:
        raise InvalidArgumentError(f"run: x has shape {tuple(x.shape)}; give one row of {target.dim} sites per chain")
    if x.is_floating_point() or x.min() < 0 or x.max() >= target.num_categories:
        raise InvalidArgumentError(
            f"run: x holds {x.dtype} values from {x.min().item()} to {x.max().item()}; "
            f"give integers in 0..{target.num_categories - 1}"
        )
    return x.long()


def _check_allowed(state: ChainState) -> None:
    forbidden = int((state.log_density == -torch.inf).sum())
    if forbidden:
        raise InvalidArgumentError(
            f"run: {forbidden} of {len(state.x)} chains still stand at a forbidden state (log density -inf) after the "
            "burn-in; start them at allowed states with x=, or give them a longer burn_in"
        )
