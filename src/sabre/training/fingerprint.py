"""Whether a target is the one that a run was trained on."""

import math
from typing import Any

import torch

from sabre.errors import InvalidArgumentError
from sabre.noise import Noise
from sabre.targets import AbstractTarget

__all__ = ["fingerprint", "require_same"]

_PROBES = 4
_TOLERANCE = 1e-3


def fingerprint(target: AbstractTarget, device: torch.device) -> dict[str, Any]:
    """Size of the space and log densities of a few states, as plain JSON values (text, since -inf is allowed)."""
    x = Noise.named(0, "probes", device).integers(target.num_categories, (_PROBES, target.dim))
    values = [str(value) for value in target.log_density(x).double().tolist()]
    return {"dim": target.dim, "num_categories": target.num_categories, "log_density": values}


def require_same(target: AbstractTarget, expected: dict[str, Any], device: torch.device) -> None:
    """Refuse a target of another size, or with other log densities."""
    remedy = "pass the target that it was trained on"
    for name in ("dim", "num_categories"):
        if getattr(target, name) != expected[name]:
            raise InvalidArgumentError(
                f"{target!r} has {name} {getattr(target, name)}, that of the run had {expected[name]}; {remedy}"
            )
    for found, kept in zip(fingerprint(target, device)["log_density"], expected["log_density"], strict=True):
        if not math.isclose(float(found), float(kept), rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            raise InvalidArgumentError(
                f"{target!r} has log density {float(found):.6g} where that of the run had {float(kept):.6g}; {remedy}"
            )
