"""Orders: which token a trajectory reveals first, second, ..."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.noise import NoiseLike
from sabre.targets import Layout

__all__ = ["ORDERS", "Order", "make_order"]


@dataclass(frozen=True)
class Order:
    """Classes of tokens are revealed one after the other, each in uniformly random order.

    One class is the uniformly random order of the paper; classes of one token are a fixed order. The probability of
    an order does not depend on the values, so it is the same forwards and backwards and cancels from the log-weight.
    """

    classes: tuple[Int[Tensor, " members"], ...]

    def __post_init__(self) -> None:
        members = torch.cat(self.classes)
        if not torch.equal(members.sort().values, torch.arange(len(members))):
            raise InvalidArgumentError("an order must name every token exactly once; check the classes it was made of")

    @property
    def num_tokens(self) -> int:
        return sum(len(members) for members in self.classes)

    @property
    def is_fixed(self) -> bool:
        return all(len(members) == 1 for members in self.classes)

    def draw(self, batch: int, noise: NoiseLike, device: torch.device | str = "cpu") -> Int[Tensor, "batch tokens"]:
        """One permutation per row: position n holds the token that is revealed n-th."""
        if self.is_fixed:
            return torch.cat(self.classes).to(device).expand(batch, -1)
        parts = []
        for members in self.classes:
            local = members.to(device)
            parts.append(
                local.expand(batch, -1) if len(members) == 1 else local[noise.permutation(batch, len(members))]
            )
        return torch.cat(parts, 1)


def _one_by_one(tokens: Int[Tensor, " tokens"]) -> Order:
    return Order(tuple(tokens.unsqueeze(1)))


def _random(layout: Layout) -> Order:
    return Order((torch.arange(len(layout.coords)),))


def _raster(layout: Layout) -> Order:
    return _one_by_one(torch.arange(len(layout.coords)))


def _checkerboard(layout: Layout) -> Order:
    """Even sites first, odd sites second: on an even torus the sites of one colour are independent given the other."""
    colour = layout.coords.sum(1) % 2
    return Order(tuple((colour == c).nonzero().squeeze(1) for c in (0, 1) if bool((colour == c).any())))


def _significance(layout: Layout) -> Order:
    """The leading token of every coordinate first (the most significant bits of a code), the last ones last."""
    level = layout.coords[:, -1]
    return _one_by_one(torch.argsort(level * len(level) + torch.arange(len(level))))


ORDERS: dict[str, Callable[[Layout], Order]] = {
    "random": _random,
    "raster": _raster,
    "checkerboard": _checkerboard,
    "significance": _significance,
}


def make_order(name: str, layout: Layout) -> Order:
    """The order of that name over the tokens of a layout."""
    if name not in ORDERS:
        raise UnknownNameError("order", name, ORDERS)
    return ORDERS[name](layout)
