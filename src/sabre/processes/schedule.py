"""Schedules: how many tokens each step of a trajectory reveals."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.noise import NoiseLike

__all__ = ["Schedule"]


@dataclass(frozen=True)
class Schedule:
    """Each step reveals a uniformly random number of tokens between k_min and k_max; the last takes what is left.

    The number of tokens per step does not depend on their values, so the probability of a schedule is the same
    forwards and backwards and cancels from the log-weight.
    """

    k_min: int = 1
    k_max: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.k_min <= self.k_max:
            raise InvalidArgumentError(
                f"a schedule from {self.k_min} to {self.k_max} tokens per step is empty; choose 1 <= k_min <= k_max"
            )

    def draw(self, num_tokens: int, noise: NoiseLike) -> Int[Tensor, " steps"]:
        """k_1..k_N with sum num_tokens."""
        if self.k_min == self.k_max:
            sizes = torch.full((-(-num_tokens // self.k_max),), self.k_max)
        else:
            sizes = self.k_min + noise.integers(self.k_max - self.k_min + 1, (-(-num_tokens // self.k_min),)).cpu()
        ends = sizes.cumsum(0).clamp(max=num_tokens)
        sizes = torch.diff(ends, prepend=ends.new_zeros(1))
        return sizes[sizes > 0]
