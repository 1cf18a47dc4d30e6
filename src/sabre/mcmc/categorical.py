"""Random changes of every site at once."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.mcmc.base import Proposal
from sabre.noise import NoiseLike
from sabre.targets import AbstractTarget

__all__ = ["Categorical"]


@dataclass(frozen=True)
class Categorical:
    """q(x' | x) = prod_i keep^{1[x'_i = x_i]} ((1 - keep) / (C - 1))^{1[x'_i != x_i]}, which is symmetric."""

    keep: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.keep < 1:
            raise InvalidArgumentError(f"Categorical: keep is {self.keep}; give a probability between 0 and 1")

    def propose(self, x: Int[Tensor, "chains dim"], target: AbstractTarget, noise: NoiseLike) -> Proposal:
        kept = noise.bernoulli(torch.full(x.shape, self.keep, dtype=torch.float64, device=x.device))
        shift = 1 + noise.integers(target.num_categories - 1, x.shape)
        return Proposal(torch.where(kept, x, (x + shift) % target.num_categories))
