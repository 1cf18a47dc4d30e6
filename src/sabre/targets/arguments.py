"""Checks of the arguments that targets take from their users."""

import math
from numbers import Integral, Real

from sabre.errors import InvalidArgumentError

__all__ = ["require_finite", "require_int"]


def require_int(owner: str, argument: str, value: object, low: int, high: int | None = None) -> int:
    """`value` as an int in low..high; numpy integers pass, booleans and floats do not."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidArgumentError(f"{owner}: {argument}={value!r} is not a whole number; pass an int, e.g. {low}")
    number = int(value)
    if number < low or (high is not None and number > high):
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidArgumentError(f"{owner}: {argument}={number} is out of range; choose an int {span}")
    return number


def require_finite(owner: str, argument: str, value: object) -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidArgumentError(f"{owner}: {argument}={value!r} is not a finite number; pass a float, e.g. 1.0")
    return float(value)
