"""A target made from a user's function."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError, TargetError
from sabre.noise import Noise, NoiseLike
from sabre.targets.arguments import require_finite, require_int
from sabre.targets.base import AbstractTarget, Layout, Symmetry
from sabre.targets.guard import guarded_log_density
from sabre.targets.pairwise import Pairwise

__all__ = ["Target"]

_PROBES = 8


class Target(AbstractTarget):
    """The density whose log is `log_density`, a function from states (batch, dim) to one float per row.

        Target(lambda x: -(x - 1).abs().sum(-1).float(), dim=10, num_categories=3)

    What is known can be said: `log_z`, the exact log of the normalising constant; `sample`, a function that turns n
    into n exact samples; `layout`, how the sites lie; `pairwise`, its couplings and fields if it is a sum over pairs
    (for informed logits and Swendsen-Wang); `symmetries`; `spec`, from which `make_target` can build the target again.
    """

    def __init__(
        self,
        log_density: Callable[[Tensor], Any],
        dim: int,
        num_categories: int,
        *,
        name: str = "user",
        log_z: float | None = None,
        sample: Callable[[int], Tensor] | None = None,
        layout: Layout | None = None,
        pairwise: Pairwise | None = None,
        symmetries: Sequence[Symmetry] = (),
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        for argument, value in (("log_density", log_density), ("sample", sample)):
            if not callable(value) and not (argument == "sample" and value is None):
                raise InvalidArgumentError(f"Target: {argument}={value!r} is not callable; pass a function")
        self.name = name
        self.dim = require_int("Target", "dim", dim, low=1)
        self.num_categories = require_int("Target", "num_categories", num_categories, low=2)
        self._function = log_density
        self._log_z = None if log_z is None else require_finite("Target", "log_z", log_z)
        self._sample = sample
        if layout is not None and len(layout.coords) != self.dim:
            raise InvalidArgumentError(
                f"Target: layout has coords for {len(layout.coords)} sites, but dim={self.dim}; give one row per site"
            )
        self._layout = layout
        self._spec = None if spec is None else dict(spec)
        self._symmetries = tuple(symmetries)
        self._pairwise = None if pairwise is None else self._checked(pairwise)

    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        label = getattr(self._function, "__qualname__", type(self._function).__name__)
        return guarded_log_density(self._function, f"the log density {label!r}", x)

    @property
    def spec(self) -> dict[str, Any] | None:
        return super().spec if self._spec is None else dict(self._spec)

    @property
    def layout(self) -> Layout:
        return super().layout if self._layout is None else self._layout

    @property
    def pairwise(self) -> Pairwise | None:
        return self._pairwise

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return self._symmetries

    def _checked(self, pairwise: Pairwise) -> Pairwise:
        """The couplings and fields, if they say the same as the function on a few states."""
        if (pairwise.dim, pairwise.num_categories) != (self.dim, self.num_categories):
            raise InvalidArgumentError(
                f"Target: pairwise is for {pairwise.dim} sites of {pairwise.num_categories} categories; the target has "
                f"{self.dim} of {self.num_categories}"
            )
        x = Noise.named(0, "probes").integers(self.num_categories, (_PROBES, self.dim))
        found, told = self.log_density(x).double(), pairwise.log_density(x)
        gap = (found - told)[found.isfinite() & told.isfinite()]
        same_support = torch.equal(found.isfinite(), told.isfinite())
        if not same_support or (len(gap) and float(gap.max() - gap.min()) > 1e-3):
            raise InvalidArgumentError(
                f"Target: log_density gives {found.tolist()[0]:.6g}, {found.tolist()[1]:.6g}, ... to states to which "
                f"pairwise gives {told.tolist()[0]:.6g}, {told.tolist()[1]:.6g}, ...; they must agree up to a constant"
            )
        return pairwise

    def closed_form_log_z(self) -> float | None:
        return self._log_z

    def closed_form_sample(self, n: int, noise: NoiseLike) -> Int[Tensor, "n dim"] | None:  # noqa: ARG002
        """The user's exact samples; their randomness is the user's own."""
        if self._sample is None:
            return None
        x = self._sample(n)
        if not isinstance(x, Tensor) or x.shape != (n, self.dim) or x.is_floating_point():
            form = (
                f"shape {tuple(x.shape)}, {x.dtype}" if isinstance(x, Tensor) else f"a value of type {type(x).__name__}"
            )
            raise TargetError(f"sample({n}) returned {form}; return an integer tensor of shape ({n}, {self.dim})")
        if n and (int(x.min()) < 0 or int(x.max()) >= self.num_categories):
            raise TargetError(
                f"sample({n}) returned categories from {int(x.min())} to {int(x.max())}; "
                f"they must lie in 0..{self.num_categories - 1}"
            )
        return x.to(torch.long)
