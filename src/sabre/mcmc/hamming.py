"""Random changes of a few sites: the proposal that needs to know nothing about the target."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.mcmc.base import Proposal
from sabre.noise import NoiseLike
from sabre.targets import AbstractTarget

__all__ = ["HammingBall"]


@dataclass(frozen=True)
class HammingBall:
    """`radius` single-site changes one after the other, judged together.

    Each change picks a site i uniformly and replaces x_i by one of the other C-1 categories, uniformly. The same site
    may be picked again. The proposal is symmetric. With two categories every change flips one spin, so an even radius
    keeps the parity of their sum and half of the states are never reached: use an odd radius there.
    """

    radius: int = 1

    def __post_init__(self) -> None:
        if self.radius < 1:
            raise InvalidArgumentError(f"HammingBall: radius is {self.radius}; give a whole number of at least 1")

    def propose(self, x: Int[Tensor, "chains dim"], target: AbstractTarget, noise: NoiseLike) -> Proposal:
        chains, dim = x.shape
        for _ in range(self.radius):
            site = noise.integers(dim, (chains,)).unsqueeze(1)
            shift = 1 + noise.integers(target.num_categories - 1, (chains,)).unsqueeze(1)
            x = x.scatter(1, site, (x.gather(1, site) + shift) % target.num_categories)
        return Proposal(x)
