"""The mixture of 40 Gaussians, on Gray codes."""

import functools
import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.noise import NoiseLike
from sabre.targets.arguments import require_int
from sabre.targets.base import AbstractTarget, Layout
from sabre.targets.gray import GrayGrid

__all__ = ["GMM40"]

_COMPONENTS = 40
_RADIUS = 50.0
_SPREAD = 47.0
_CHUNK = 2**14


class GMM40(AbstractTarget):
    """log_density(x) = log(1/40 sum_m N(y(x); mu_m, I)) + log cell volume, y(x) the cell centre in [-50, 50]^D.

    `dim` is D; the target has `bits` sites per axis. The means are uniform in [-47, 47]^D, drawn once per `seed`.
    """

    name = "gmm40"
    num_categories = 2

    def __init__(self, dim: int, seed: int = 0, bits: int = 8) -> None:
        self.num_axes = require_int("GMM40", "dim", dim, low=1)
        self.seed = require_int("GMM40", "seed", seed, low=0, high=2**32 - 1)
        self.grid = GrayGrid(self.num_axes, require_int("GMM40", "bits", bits, low=1, high=12), _RADIUS)
        self.dim = self.grid.num_sites
        stream = torch.Generator().manual_seed(self.seed)
        uniform = torch.rand(_COMPONENTS, self.num_axes, generator=stream)
        self.means = (uniform * (2 * _SPREAD) - _SPREAD).double()

    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        """A sum over axes of tabulated values per component, then over components."""
        table = self._table.to(x.device)
        cell = self.grid.decode_integers(x) + self.grid.cells * torch.arange(self.num_axes, device=x.device)
        terms = table.index_select(0, cell.flatten()).unflatten(0, cell.shape)
        return terms.sum(1).logsumexp(1) - math.log(_COMPONENTS)

    @functools.cached_property
    def _table(self) -> Float[Tensor, "cells components"]:
        """Log of the mass of each component on each cell of each axis: rows axis by axis."""
        return self._log_cells().permute(1, 2, 0).flatten(0, 1).contiguous()

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "dim": self.num_axes, "seed": self.seed, "bits": self.grid.bits}

    @property
    def layout(self) -> Layout:
        return self.grid.layout

    def decode(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, "batch axes"]:
        return self.grid.decode(x)

    def _log_cells(self) -> Float[Tensor, "components axes cells"]:
        """log of the mass N(y_k; mu_mj, 1) * width that component m puts on cell k of axis j."""
        log_normal = -0.5 * (self.grid.centres - self.means.unsqueeze(-1)).square() - 0.5 * math.log(2 * math.pi)
        return log_normal + self.grid.log_cell_width

    def closed_form_log_z(self) -> float:
        """Z = 1/40 sum_m prod_j sum_k (mass of component m on cell k of axis j)."""
        return float(self._log_cells().logsumexp(-1).sum(-1).logsumexp(0)) - math.log(_COMPONENTS)

    def closed_form_sample(self, n: int, noise: NoiseLike) -> Int[Tensor, "n dim"]:
        """A component by its mass on the grid, then the cell of each axis by that component's mass."""
        log_cells = self._log_cells()
        component = noise.index(log_cells.logsumexp(-1).sum(-1), n)
        cells = [noise.categorical(log_cells[part]) for part in torch.split(component, _CHUNK)]
        return self.grid.encode_integers(torch.cat(cells))
