"""Gray codes, and the grid that turns a continuous density into one on binary codes."""

import functools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.targets.arguments import require_finite, require_int
from sabre.targets.base import Layout

__all__ = ["GrayGrid", "gray_to_integer", "integer_to_gray"]


def integer_to_gray(k: Int[Tensor, "*batch"], bits: int) -> Int[Tensor, "*batch bits"]:
    """The bits of k XOR (k >> 1), the most significant first: neighbours k, k+1 differ in one bit."""
    shift = torch.arange(bits - 1, -1, -1, device=k.device)
    return ((k ^ (k >> 1)).unsqueeze(-1) >> shift) & 1


def gray_to_integer(code: Int[Tensor, "*batch bits"]) -> Int[Tensor, "*batch"]:
    """The inverse: binary digit i is the parity of the Gray bits 0..i."""
    place = 2 ** torch.arange(code.shape[-1] - 1, -1, -1, device=code.device)
    return (code.cumsum(-1) % 2 * place).sum(-1)


@dataclass(frozen=True)
class GrayGrid:
    """[-R, R]^D cut into 2^b cells per axis; axis j has its Gray code at sites j*b .. j*b + b-1.

    Cell k stands for its centre ((k + 0.5) / 2^b) 2R - R.
    """

    dim: int
    bits: int
    radius: float

    def __post_init__(self) -> None:
        require_int("GrayGrid", "dim", self.dim, low=1)
        require_int("GrayGrid", "bits", self.bits, low=1, high=12)
        if require_finite("GrayGrid", "radius", self.radius) <= 0:
            raise InvalidArgumentError(f"GrayGrid: radius={self.radius} is not positive; choose a float above 0")

    @property
    def cells(self) -> int:
        return 2**self.bits

    @property
    def num_sites(self) -> int:
        return self.dim * self.bits

    @property
    def log_cell_width(self) -> float:
        return math.log(2 * self.radius / self.cells)

    @property
    def log_cell_volume(self) -> float:
        return self.dim * self.log_cell_width

    @functools.cached_property
    def centres(self) -> Float[Tensor, " cells"]:
        k = torch.arange(self.cells, dtype=torch.float64)
        return (k + 0.5) / self.cells * 2 * self.radius - self.radius

    @property
    def layout(self) -> Layout:
        site = torch.arange(self.num_sites)
        return Layout("code", (self.dim, self.bits), torch.stack([site // self.bits, site % self.bits], 1))

    def encode_integers(self, k: Int[Tensor, "batch axes"]) -> Int[Tensor, "batch sites"]:
        return integer_to_gray(k, self.bits).flatten(1)

    def decode_integers(self, x: Int[Tensor, "batch sites"]) -> Int[Tensor, "batch axes"]:
        return gray_to_integer(x.reshape(len(x), self.dim, self.bits))

    def decode(self, x: Int[Tensor, "batch sites"]) -> Float[Tensor, "batch axes"]:
        return self.centres.to(x.device)[self.decode_integers(x)]
