"""The Ising model on a square torus."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.targets.arguments import require_finite, require_int
from sabre.targets.base import AbstractTarget, Layout, Symmetry
from sabre.targets.enumeration import ExactEnergy, enumerated_energy
from sabre.targets.kaufman import kaufman_log_z, kaufman_moments
from sabre.targets.lattice import torus_edges, torus_layout, torus_symmetries
from sabre.targets.pairwise import Pairwise
from sabre.targets.symmetry import permute_categories
from sabre.targets.transfer import LARGEST_ROW, transfer_log_z

__all__ = ["Ising"]


class Ising(AbstractTarget):
    """log_density(x) = beta (J sum_{i~j} s_i s_j + h sum_i s_i), s = 2x - 1, on the L x L torus.

    `size` is L, `coupling` J (negative: antiferromagnet), `field` h. At L = 2 every bond counts twice.
    """

    name = "ising"
    num_categories = 2

    def __init__(self, size: int, beta: float, coupling: float = 1.0, field: float = 0.0) -> None:
        self.size = require_int("Ising", "size", size, low=2)
        self.beta = require_finite("Ising", "beta", beta)
        self.coupling = require_finite("Ising", "coupling", coupling)
        self.field = require_finite("Ising", "field", field)
        self.dim = self.size**2
        edges = torus_edges(self.size)
        bond, single = self.beta * self.coupling, self.beta * self.field
        self._pairwise = Pairwise(
            edges,
            torch.full((len(edges),), 2 * bond, dtype=torch.float64),
            torch.tensor([-single, single], dtype=torch.float64).expand(self.dim, 2).contiguous(),
            -bond * len(edges),
        )

    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        s = 2 * x.reshape(-1, self.size, self.size) - 1
        bonds = (s * (s.roll(1, 1) + s.roll(1, 2))).sum((1, 2)).double()
        return self.beta * (self.coupling * bonds + self.field * s.sum((1, 2)).double())

    @property
    def spec(self) -> dict[str, Any]:
        arguments = {"size": self.size, "beta": self.beta, "coupling": self.coupling, "field": self.field}
        return {"name": self.name, **arguments}

    @property
    def layout(self) -> Layout:
        return torus_layout(self.size)

    @property
    def pairwise(self) -> Pairwise:
        return self._pairwise

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        flip = (permute_categories("spin flip", [1, 0]),) if self.field == 0 else ()
        return torus_symmetries(self.size) + flip

    def closed_form_log_z(self) -> float | None:
        bond = self.beta * self.coupling
        kaufman = kaufman_log_z(self.size, bond) if self.field == 0 else None
        if kaufman is not None or 2**self.size > LARGEST_ROW:
            return kaufman
        trace = transfer_log_z(self.size, 2 * bond, self._pairwise.field[0])
        return None if trace is None else trace + self._pairwise.constant

    def exact_energy(self) -> ExactEnergy | None:
        """From d log Z / dK and d^2 log Z / dK^2 at K = beta J without a field, else by enumeration.

        H = -J sum_{i~j} s_i s_j - h sum_i s_i, so E H = -J d log Z / dK and beta^2 Var H = K^2 d^2 log Z / dK^2.
        """
        bond = self.beta * self.coupling
        moments = kaufman_moments(self.size, bond) if self.field == 0 else None
        if moments is not None:
            return ExactEnergy(-self.coupling * moments.first, bond**2 * moments.second)
        if not self.is_enumerable:
            return None
        return enumerated_energy(-Ising(self.size, 1.0, self.coupling, self.field)._enumerated, self.beta)

    def phase(self, x: Int[Tensor, "batch dim"]) -> Int[Tensor, " batch"] | None:
        """1 where most spins are up, 0 where most are down; the spin of site 0 decides a tie."""
        if self.field != 0:
            return None
        magnetisation = (2 * x - 1).sum(1)
        return torch.where(magnetisation == 0, x[:, 0], (magnetisation > 0).to(x.dtype))

    @property
    def num_phases(self) -> int:
        return 2 if self.field == 0 else 0
