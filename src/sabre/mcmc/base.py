"""What a kernel is: a way to propose the next state of every chain."""

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from sabre.noise import NoiseLike
from sabre.targets import AbstractTarget

__all__ = ["ChainState", "Kernel", "Proposal", "StepInfo"]


class ChainState(NamedTuple):
    """All that the next step needs."""

    x: Int[Tensor, "chains dim"]
    log_density: Float[Tensor, " chains"]


class Proposal(NamedTuple):
    """A candidate per chain, and what the accept step must know about how it was drawn.

    `log_correction` is log q(x | x') - log q(x' | x), or None where q is symmetric. A `rejection_free` proposal leaves
    the target invariant by itself and is always taken. `num_evaluations` counts the log densities that proposing
    itself evaluated, per chain.
    """

    x: Int[Tensor, "chains dim"]
    log_correction: Float[Tensor, " chains"] | None = None
    rejection_free: bool = False
    num_evaluations: int = 0


class StepInfo(NamedTuple):
    """What happened in one step; nothing here is needed for the next one."""

    acceptance: Float[Tensor, " chains"]
    accepted: Bool[Tensor, " chains"]
    num_evaluations: int


@runtime_checkable
class Kernel(Protocol):
    """One way to propose. Kernels are frozen dataclasses: options only, no state."""

    def propose(self, x: Int[Tensor, "chains dim"], target: AbstractTarget, noise: NoiseLike) -> Proposal:
        """Draw a candidate for every chain, each on its own.

        `x` is left as it is. The number of draws from `noise` and their ranges may depend on the target and on the
        options of the kernel, never on `x`.
        """
