"""The ManyWell density, plain and rotated, on Gray codes."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.noise import NoiseLike
from sabre.targets.arguments import require_int
from sabre.targets.base import AbstractTarget, Layout, Symmetry
from sabre.targets.gray import GrayGrid
from sabre.targets.symmetry import permute_categories, permute_sites

__all__ = ["ManyWell"]

_RADIUS = 4.0


class ManyWell(AbstractTarget):
    """log_density(x) = -sum_pairs (u^4 - 6 u^2 - u/2 + v^2/2) + log cell volume, on [-4, 4]^D.

    For each pair (y1, y2) of coordinates of the cell centre, u = y1 and v = y2; rotated (the paper's default),
    u = (y1 + y2) / sqrt 2 and v = (y2 - y1) / sqrt 2. `dim` is D; the target has `bits` sites per axis.
    """

    name = "manywell"
    num_categories = 2

    def __init__(self, dim: int, rotated: bool = True, bits: int = 8) -> None:
        self.num_axes = require_int("ManyWell", "dim", dim, low=2)
        if self.num_axes % 2:
            raise InvalidArgumentError(
                f"ManyWell: dim={dim} is odd, but wells come in pairs of axes; choose {dim - 1} or {dim + 1}"
            )
        if not isinstance(rotated, bool):
            raise InvalidArgumentError(f"ManyWell: rotated={rotated!r} is not a truth value; pass True or False")
        self.rotated = rotated
        self.grid = GrayGrid(self.num_axes, require_int("ManyWell", "bits", bits, low=1, high=12), _RADIUS)
        self.dim = self.grid.num_sites

    def _energy(self, y1: Float[Tensor, "*batch"], y2: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        root = math.sqrt(2)
        u, v = ((y1 + y2) / root, (y2 - y1) / root) if self.rotated else (y1, y2)
        return u**4 - 6 * u**2 - u / 2 + v**2 / 2

    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        y = self.grid.decode(x)
        return -self._energy(y[:, ::2], y[:, 1::2]).sum(1) + self.grid.log_cell_volume

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "dim": self.num_axes, "rotated": self.rotated, "bits": self.grid.bits}

    @property
    def layout(self) -> Layout:
        return self.grid.layout

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """v -> -v in each pair, and the exchange of neighbouring pairs."""
        pairs = self.num_axes // 2
        reflections = [self._reflection(pair) for pair in range(pairs)]
        site = torch.arange(self.dim).reshape(pairs, -1)
        exchanges = []
        for pair in range(pairs - 1):
            order = torch.arange(pairs)
            order[[pair, pair + 1]] = order[[pair + 1, pair]]
            exchanges.append(permute_sites(f"exchange of pairs {pair} and {pair + 1}", site[order].flatten()))
        return (*reflections, *exchanges)

    def _reflection(self, pair: int) -> Symmetry:
        name, bits = f"v -> -v in pair {pair}", self.grid.bits
        first, second = 2 * pair * bits, (2 * pair + 1) * bits
        if not self.rotated:
            # Cell k and its mirror image 2^b - 1 - k have Gray codes that differ in the most significant bit only.
            return permute_categories(name, [1, 0], torch.tensor([second]))
        source = torch.arange(self.dim)
        source[first:second], source[second : second + bits] = (
            source[second : second + bits].clone(),
            source[first:second].clone(),
        )
        return permute_sites(name, source)

    def decode(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, "batch axes"]:
        return self.grid.decode(x)

    def _log_pair(self) -> Float[Tensor, "cells cells"]:
        """log of the mass of each cell of the plane of one pair."""
        y1, y2 = torch.meshgrid(self.grid.centres, self.grid.centres, indexing="ij")
        return 2 * self.grid.log_cell_width - self._energy(y1, y2)

    def closed_form_log_z(self) -> float:
        """D/2 times the log of the mass of one pair."""
        return self.num_axes / 2 * float(self._log_pair().flatten().logsumexp(0))

    def closed_form_sample(self, n: int, noise: NoiseLike) -> Int[Tensor, "n dim"]:
        """The pairs are independent: draw each one's cell of the plane."""
        log_pair = self._log_pair().flatten()
        flat = torch.stack([noise.index(log_pair, n) for _ in range(self.num_axes // 2)], 1)
        cells = torch.stack([flat // self.grid.cells, flat % self.grid.cells], -1)
        return self.grid.encode_integers(cells.flatten(1))
