"""What a target is: a log density on {0..C-1}^d, and the truth about it where somebody knows it."""

import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.noise import NoiseLike
from sabre.targets.elimination import EliminationOrder, elimination_log_z, elimination_sample, treewidth_order
from sabre.targets.enumeration import ENUMERABLE, ExactEnergy, enumerated_log_density, sample_enumerated
from sabre.targets.pairwise import Pairwise

__all__ = ["AbstractTarget", "Layout", "Symmetry"]


class Symmetry(NamedTuple):
    """A bijection of the state space that leaves the log density unchanged."""

    name: str
    apply: Callable[[Tensor], Tensor]


class Layout(NamedTuple):
    """How the sites of a target lie: what orders, blocks and pictures need to know.

    `kind` is "torus" (coords: row, column), "code" (coords: coordinate, bit; the most significant bit is 0) or
    "line" (coords: index). `shape` bounds the coords.
    """

    kind: str
    shape: tuple[int, ...]
    coords: Int[Tensor, "dim axes"]


class AbstractTarget(ABC):
    """p(x) proportional to exp(log_density(x)) on {0..C-1}^d. Subclasses are final and live in one file each."""

    name: str
    dim: int
    num_categories: int
    imported_from: str | None = None
    """Where `make_target` finds this target, "module:attribute", if it came from there."""

    @abstractmethod
    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        """log of the unnormalised density, one value per row; -inf means forbidden."""

    @property
    def spec(self) -> dict[str, Any] | None:
        """Name and arguments from which `make_target` builds this target again; None if it cannot be."""
        return None if self.imported_from is None else {"name": self.imported_from}

    def __repr__(self) -> str:
        """The arguments that differ from their defaults."""
        shown = {"dim": self.dim, "num_categories": self.num_categories} | (self.spec or {})
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        given = [f"{name}={shown[name]!r}" for name in defaults if name in shown and shown[name] != defaults[name]]
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def layout(self) -> Layout:
        return Layout("line", (self.dim,), torch.arange(self.dim).unsqueeze(1))

    @property
    def pairwise(self) -> Pairwise | None:
        """Couplings and fields, for targets that are sums over pairs of sites."""
        return None

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return ()

    def closed_form_log_z(self) -> float | None:
        """log Z from a formula, if there is one."""
        return None

    def closed_form_sample(self, n: int, noise: NoiseLike) -> Int[Tensor, "n dim"] | None:
        """Exact samples from a formula, if there is one."""
        return None

    def exact_energy(self) -> ExactEnergy | None:
        """Mean energy and heat capacity, where they are known.

        H is defined by log_density = -beta H, so only targets with an inverse temperature have an energy; the others
        keep the None of this method. Being a moment of H at the target's beta, it is defined at beta = 0 too.
        """
        return None

    def decode(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, "batch axes"] | None:
        """The continuous point that a state stands for, if it stands for one."""
        return None

    def phase(self, x: Int[Tensor, "batch dim"]) -> Int[Tensor, " batch"] | None:
        """Which of the symmetric images (spin up or down, majority colour) a state belongs to, if there are such."""
        return None

    @property
    def num_phases(self) -> int:
        return 0

    @property
    def is_enumerable(self) -> bool:
        """True where all C^d states can be visited in seconds."""
        return self.num_categories**self.dim <= ENUMERABLE

    @property
    def log_z_exact(self) -> float | None:
        """The exact log of the normalising constant: a formula, else enumeration, else elimination, else None."""
        return self._log_z_and_source[0]

    @property
    def log_z_source(self) -> str:
        """Where `log_z_exact` comes from: "closed form", "enumeration", "elimination" or "unknown"."""
        return self._log_z_and_source[1]

    @functools.cached_property
    def _log_z_and_source(self) -> tuple[float | None, str]:
        closed = self.closed_form_log_z()
        if closed is not None:
            return closed, "closed form"
        if self.is_enumerable:
            return float(self._enumerated.logsumexp(0)), "enumeration"
        if self.pairwise is not None and self._elimination_order is not None:
            return self._eliminated_log_z(self.pairwise, self._elimination_order), "elimination"
        return None, "unknown"

    def _eliminated_log_z(self, model: Pairwise, order: EliminationOrder) -> float | None:
        """log Z of the couplings and fields, which say the same as the log density up to a constant."""
        log_z = elimination_log_z(model, order)
        if log_z is None or log_z == -math.inf:
            return log_z
        allowed = model.field.argmax(1).unsqueeze(0)
        return log_z + float(self.log_density(allowed).double() - model.log_density(allowed).double())

    @functools.cached_property
    def _elimination_order(self) -> EliminationOrder | None:
        return None if self.pairwise is None else treewidth_order(self.pairwise)

    @functools.cached_property
    def _enumerated(self) -> Float[Tensor, " states"]:
        return enumerated_log_density(self.log_density, self.dim, self.num_categories)

    def sample(self, n: int, noise: NoiseLike) -> Int[Tensor, "n dim"] | None:
        """n independent exact samples, or None where nobody knows how to draw them."""
        exact = self.closed_form_sample(n, noise)
        if exact is None and self.is_enumerable:
            return sample_enumerated(self._enumerated, self.dim, self.num_categories, n, noise)
        if exact is None and self.pairwise is not None and self._elimination_order is not None:
            return elimination_sample(self.pairwise, n, noise, self._elimination_order)
        return exact

    def site_log_density(
        self, x: Int[Tensor, "batch dim"], site: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch categories"]:
        """log density of x with x[site] replaced by each category in turn (up to a constant per row)."""
        batch, categories = len(x), self.num_categories
        variants = x.repeat_interleave(categories, 0)
        values = torch.arange(categories, device=x.device).repeat(batch)
        variants[torch.arange(len(variants), device=x.device), site.repeat_interleave(categories)] = values
        return self.log_density(variants).reshape(batch, categories)
