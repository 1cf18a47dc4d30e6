"""The Metropolis-Hastings step, in the one place where candidates are accepted."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.mcmc.base import ChainState, Kernel, StepInfo
from sabre.noise import NoiseLike
from sabre.targets import AbstractTarget

__all__ = ["init", "step"]


def init(x: Int[Tensor, "chains dim"], target: AbstractTarget) -> ChainState:
    """Chains that stand at `x`."""
    return ChainState(x.clone(), target.log_density(x).double())


def step(kernel: Kernel, state: ChainState, target: AbstractTarget, noise: NoiseLike) -> tuple[ChainState, StepInfo]:
    """Move every chain once.

    1. Propose x' ~ q(. | x).
    2. Evaluate log p(x').
    3. log alpha = log p(x') - log p(x) + log q(x | x') - log q(x' | x).
    4. Accept with probability min(1, alpha); a rejection-free proposal is taken without a draw.
    5. Where accepted go to x', elsewhere stay at x.

    A forbidden state (log p = -inf) is left for any allowed candidate and never entered.
    """
    proposal = kernel.propose(state.x, target, noise)
    log_density = target.log_density(proposal.x).double()
    if proposal.rejection_free:
        acceptance = torch.ones_like(log_density)
        accepted = torch.ones_like(log_density, dtype=torch.bool)
    else:
        acceptance = _acceptance(log_density, state.log_density, proposal.log_correction)
        accepted = noise.bernoulli(acceptance)
    x = torch.where(accepted.unsqueeze(1), proposal.x, state.x)
    log_density = torch.where(accepted, log_density, state.log_density)
    return ChainState(x, log_density), StepInfo(acceptance, accepted, 1 + proposal.num_evaluations)


def _acceptance(
    new: Float[Tensor, " chains"], old: Float[Tensor, " chains"], log_correction: Float[Tensor, " chains"] | None
) -> Float[Tensor, " chains"]:
    """min(1, alpha), with the differences of infinities settled."""
    log_alpha = new - old
    if log_correction is not None:
        log_alpha = log_alpha + log_correction.double()
    log_alpha = torch.where(old == -torch.inf, 0.0, log_alpha)
    log_alpha = torch.where(new == -torch.inf, -torch.inf, log_alpha)
    return log_alpha.clamp(max=0.0).exp()
