"""The contract of a log density, checked on what a user's function really returns."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import TargetError

__all__ = ["abbreviated", "guarded_log_density"]

_SHOWN = 16


def abbreviated(state: Int[Tensor, " dim"]) -> str:
    """The state as a list, cut after its first sites."""
    values = ", ".join(str(value) for value in state[:_SHOWN].tolist())
    return f"[{values}, ... {len(state)} sites]" if len(state) > _SHOWN else f"[{values}]"


def guarded_log_density(
    function: Callable[[Tensor], Any], name: str, x: Int[Tensor, "batch dim"]
) -> Float[Tensor, " batch"]:
    """function(x) without a graph, or a TargetError that says what is wrong with it.

    The function gets a copy of x, so that not even a faulty one can damage the caller's states.
    """
    handed = x.clone()
    try:
        with torch.no_grad():
            value = function(handed)
    except TargetError:
        raise
    except (Exception, SystemExit) as error:
        raise TargetError(
            f"{name} raised {type(error).__name__}: {error} (x: shape {tuple(x.shape)}, {x.dtype}, on {x.device}); "
            "call it by hand on such an x to find the cause"
        ) from error
    if handed.shape != x.shape or not torch.equal(handed, x):
        raise TargetError(f"{name}: log_density changed its argument in place; clone x first")
    _check_form(value, name, x)
    _check_values(value, name, x)
    return value.detach()


def _check_form(value: Any, name: str, x: Int[Tensor, "batch dim"]) -> None:
    if not isinstance(value, Tensor):
        raise TargetError(
            f"{name} returned a value of type {type(value).__name__}; return a torch.Tensor of shape ({len(x)},)"
        )
    if value.shape != (len(x),):
        column = value.shape == (len(x), 1)
        hint = "use .squeeze(-1)" if column else "return one value per row of x, e.g. reduce the sites with .sum(-1)"
        raise TargetError(f"{name} returned shape {tuple(value.shape)} instead of ({len(x)},); {hint}")
    if value.dtype not in (torch.float32, torch.float64):
        real = ".real.double()" if value.is_complex() else ".double()"
        raise TargetError(f"{name} returned {value.dtype}; return float32 or float64, for example with {real}")
    if value.device != x.device:
        raise TargetError(f"{name} returned a tensor on {value.device} for x on {x.device}; move it with .to(x.device)")


def _check_values(value: Tensor, name: str, x: Int[Tensor, "batch dim"]) -> None:
    for bad, kind, remedy in (
        (value.isnan(), "NaN", "look for 0 * inf or inf - inf; return -inf for a forbidden state"),
        (value == torch.inf, "+inf", "no state may have infinite density; look for an overflow or a wrong sign"),
    ):
        if bad.any():
            row = int(bad.nonzero()[0])
            raise TargetError(
                f"{name} returned {kind} for {int(bad.sum())} of {len(x)} rows, first row {row}: "
                f"x = {abbreviated(x[row])}; {remedy}"
            )
