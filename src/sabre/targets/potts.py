"""The Potts model on a square torus."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.targets.arguments import require_finite, require_int
from sabre.targets.base import AbstractTarget, Layout, Symmetry
from sabre.targets.enumeration import ExactEnergy, enumerated_energy
from sabre.targets.lattice import torus_edges, torus_layout, torus_symmetries
from sabre.targets.pairwise import Pairwise
from sabre.targets.symmetry import permute_categories
from sabre.targets.transfer import LARGEST_ROW, transfer_log_z

__all__ = ["Potts"]


class Potts(AbstractTarget):
    """log_density(x) = beta (J sum_{i~j} 1[x_i = x_j] + sum_i field[x_i]) with q colours on the L x L torus.

    `size` is L, `coupling` J (negative: antiferromagnet), `field` one number per colour. At L = 2 every bond counts
    twice.
    """

    name = "potts"

    def __init__(
        self, size: int, q: int, beta: float, coupling: float = 1.0, field: Sequence[float] | None = None
    ) -> None:
        self.size = require_int("Potts", "size", size, low=2)
        self.num_categories = require_int("Potts", "q", q, low=2)
        self.beta = require_finite("Potts", "beta", beta)
        self.coupling = require_finite("Potts", "coupling", coupling)
        self.field = None if field is None else [require_finite("Potts", "field", value) for value in field]
        if self.field is not None and len(self.field) != q:
            raise InvalidArgumentError(f"Potts: field={self.field} has {len(self.field)} entries; give q={q} of them")
        self.dim = self.size**2
        edges = torus_edges(self.size)
        single = self.beta * torch.tensor(self.field or [0.0] * q, dtype=torch.float64)
        bond = torch.full((len(edges),), self.beta * self.coupling, dtype=torch.float64)
        self._pairwise = Pairwise(edges, bond, single.expand(self.dim, q).contiguous())

    @property
    def _is_symmetric(self) -> bool:
        return self.field is None or len(set(self.field)) == 1

    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        lattice = x.reshape(-1, self.size, self.size)
        agree = (lattice == lattice.roll(1, 1)).long() + (lattice == lattice.roll(1, 2)).long()
        bonds = self.beta * self.coupling * agree.sum((1, 2)).double()
        if self.field is None:
            return bonds
        return bonds + self._pairwise.field[0].to(x.device)[x].sum(1)

    @property
    def spec(self) -> dict[str, Any]:
        arguments = {"size": self.size, "q": self.num_categories, "beta": self.beta, "coupling": self.coupling}
        return {"name": self.name, **arguments, "field": None if self.field is None else list(self.field)}

    @property
    def layout(self) -> Layout:
        return torus_layout(self.size)

    @property
    def pairwise(self) -> Pairwise:
        return self._pairwise

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        if not self._is_symmetric:
            return torus_symmetries(self.size)
        colours = list(range(self.num_categories))
        swap = permute_categories("exchange of two colours", [1, 0, *colours[2:]])
        cycle = permute_categories("cycle of all colours", [*colours[1:], 0])
        return (*torus_symmetries(self.size), swap, cycle)

    def closed_form_log_z(self) -> float | None:
        if self.num_categories**self.size > LARGEST_ROW:
            return None
        return transfer_log_z(self.size, self.beta * self.coupling, self._pairwise.field[0])

    def exact_energy(self) -> ExactEnergy | None:
        """By enumeration, of H = -J sum_{i~j} 1[x_i = x_j] - sum_i field[x_i]."""
        if not self.is_enumerable:
            return None
        at_one = Potts(self.size, self.num_categories, 1.0, self.coupling, self.field)
        return enumerated_energy(-at_one._enumerated, self.beta)

    def phase(self, x: Int[Tensor, "batch dim"]) -> Int[Tensor, " batch"] | None:
        """The majority colour; among tied colours, the one that the lowest-numbered site has."""
        if not self._is_symmetric:
            return None
        counts = torch.nn.functional.one_hot(x, self.num_categories).sum(1)
        leads = counts == counts.amax(1, keepdim=True)
        first = leads.gather(1, x).long().argmax(1)
        return x.gather(1, first.unsqueeze(1)).squeeze(1)

    @property
    def num_phases(self) -> int:
        return self.num_categories if self._is_symmetric else 0
