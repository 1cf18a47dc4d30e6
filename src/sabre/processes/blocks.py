"""Blocks: several sites as one token with C^k values, so that they are revealed together with their joint law."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.targets import Layout

__all__ = ["Blocks"]

_MAX_VOCABULARY = 4096


@dataclass(frozen=True)
class Blocks:
    """A recoding of x in {0..C-1}^d as tokens in {0..C^k-1}^(d/k): token t stands for the sites groups[t].

    `layout` says how the tokens lie. The recoding is a bijection, so every log-probability of tokens is one of x.
    """

    groups: Int[Tensor, "tokens sites"]
    num_categories: int
    layout: Layout

    def __post_init__(self) -> None:
        if not torch.equal(self.groups.flatten().sort().values, torch.arange(self.groups.numel())):
            raise InvalidArgumentError("blocks must contain every site exactly once; check the groups")
        if self.size > 1 and self.vocabulary > _MAX_VOCABULARY:
            raise InvalidArgumentError(
                f"blocks of {self.size} sites with {self.num_categories} categories have {self.vocabulary} values, "
                f"more than {_MAX_VOCABULARY}; use smaller blocks"
            )

    @property
    def num_tokens(self) -> int:
        return self.groups.shape[0]

    @property
    def size(self) -> int:
        return self.groups.shape[1]

    @property
    def vocabulary(self) -> int:
        return self.num_categories**self.size

    @cached_property
    def token_of_site(self) -> Int[Tensor, " dim"]:
        """Which token each site belongs to."""
        return torch.argsort(self.groups.flatten()) // self.size

    @cached_property
    def values(self) -> Int[Tensor, "vocabulary sites"]:
        """The categories of the sites of a token, for every value of the token."""
        place = self._place()
        return torch.arange(self.vocabulary).unsqueeze(1) // place % self.num_categories

    def _place(self, device: torch.device | str = "cpu") -> Int[Tensor, " sites"]:
        return self.num_categories ** torch.arange(self.size - 1, -1, -1, device=device)

    def encode(self, x: Int[Tensor, "batch dim"]) -> Int[Tensor, "batch tokens"]:
        """Sites to tokens."""
        if self.size == 1:
            return x[:, self.groups[:, 0].to(x.device)]
        return (x[:, self.groups.to(x.device)] * self._place(x.device)).sum(-1)

    def decode(self, tokens: Int[Tensor, "batch tokens"]) -> Int[Tensor, "batch dim"]:
        """Tokens to sites."""
        x = tokens.new_empty(len(tokens), self.groups.numel())
        x[:, self.groups.to(tokens.device)] = self.values.to(tokens.device)[tokens]
        return x

    @classmethod
    def boxes(cls, layout: Layout, num_categories: int, box: tuple[int, ...]) -> "Blocks":
        """Rectangular blocks of the given side lengths, one per axis of the layout, in raster order."""
        if len(box) != len(layout.shape) or any(n % b for n, b in zip(layout.shape, box, strict=False)):
            raise InvalidArgumentError(
                f"blocks of shape {box} do not tile sites of shape {layout.shape}; every side must divide its axis"
            )
        side = torch.tensor(box)
        shape = tuple(n // b for n, b in zip(layout.shape, box, strict=True))
        place = torch.tensor([_product(shape[axis + 1 :]) for axis in range(len(shape))])
        token = (layout.coords // side * place).sum(1)
        groups = torch.argsort(token, stable=True).reshape(_product(shape), -1)
        coords = layout.coords[groups[:, 0]] // side
        return cls(groups, num_categories, Layout(layout.kind, shape, coords))


def _product(numbers: tuple[int, ...]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result
