"""A target that checks and counts every evaluation of another one."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import TargetError
from sabre.noise import NoiseLike
from sabre.targets.base import AbstractTarget, Layout, Symmetry
from sabre.targets.enumeration import ExactEnergy
from sabre.targets.guard import abbreviated, guarded_log_density
from sabre.targets.pairwise import Pairwise

__all__ = ["CheckedTarget"]


class CheckedTarget(AbstractTarget):
    """Behaves as `target`; `num_evaluations` counts the rows whose log density was asked for.

    Exact values (log Z, exact samples) are asked of `target` directly and are not counted.
    """

    def __init__(self, target: AbstractTarget) -> None:
        self._target = target
        self.name = target.name
        self.dim = target.dim
        self.num_categories = target.num_categories
        self.num_evaluations = 0
        self.has_seen_allowed = False

    def __repr__(self) -> str:
        return f"CheckedTarget({self._target!r})"

    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        self.num_evaluations += len(x)
        value = guarded_log_density(self._target.log_density, f"{type(self._target).__name__}.log_density", x)
        self.has_seen_allowed = self.has_seen_allowed or bool((value > -torch.inf).any())
        return value

    def check_support(self, x: Int[Tensor, "batch dim"]) -> None:
        """Refuse a target of which no state that was ever evaluated, nor any of `x`, is allowed.

        Where the space is small enough to be enumerated, one allowed state anywhere is enough.
        """
        if self.has_seen_allowed or (self.log_density(x) > -torch.inf).any():
            return
        if self.is_enumerable and self.log_z_exact != -math.inf:
            return
        raise TargetError(
            f"the log density of {self._target!r} is -inf on all {self.num_evaluations} random states that were "
            f"tried, e.g. x = {abbreviated(x[0])}; allow more states, or replace -inf by a finite penalty"
        )

    def site_log_density(
        self, x: Int[Tensor, "batch dim"], site: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch categories"]:
        """The target's own shortcut where it has one, counted as all its C values per row."""
        if type(self._target).site_log_density is AbstractTarget.site_log_density:
            return super().site_log_density(x, site)
        self.num_evaluations += len(x) * self.num_categories
        return self._target.site_log_density(x.clone(), site)

    @property
    def spec(self) -> dict[str, Any] | None:
        return self._target.spec

    @property
    def layout(self) -> Layout:
        return self._target.layout

    @property
    def pairwise(self) -> Pairwise | None:
        return self._target.pairwise

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return self._target.symmetries

    def closed_form_log_z(self) -> float | None:
        return self._target.closed_form_log_z()

    def exact_energy(self) -> ExactEnergy | None:
        return self._target.exact_energy()

    def closed_form_sample(self, n: int, noise: NoiseLike) -> Int[Tensor, "n dim"] | None:
        return self._target.closed_form_sample(n, noise)

    def decode(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, "batch axes"] | None:
        return self._target.decode(x)

    def phase(self, x: Int[Tensor, "batch dim"]) -> Int[Tensor, " batch"] | None:
        return self._target.phase(x)

    @property
    def num_phases(self) -> int:
        return self._target.num_phases

    @property
    def is_enumerable(self) -> bool:
        return self._target.is_enumerable

    @property
    def log_z_exact(self) -> float | None:
        return self._target.log_z_exact

    @property
    def log_z_source(self) -> str:
        return self._target.log_z_source

    def sample(self, n: int, noise: NoiseLike) -> Int[Tensor, "n dim"] | None:
        return self._target.sample(n, noise)
