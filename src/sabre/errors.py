"""Errors that sabre raises for its users: each names the cause and one thing to do."""

import difflib
from collections.abc import Iterable

__all__ = [
    "CheckpointError",
    "InvalidArgumentError",
    "NonFiniteError",
    "RunDirectoryError",
    "SabreError",
    "TargetError",
    "UnknownNameError",
]


class SabreError(Exception):
    """Base of every error that is meant for the user; the command line turns it into exit code 2."""


class InvalidArgumentError(SabreError, ValueError):
    """An argument or option has a value that makes no sense."""


class UnknownNameError(InvalidArgumentError):
    """A name that is not in its table; the message suggests the nearest spelling."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.4)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."
        super().__init__(f"unknown {kind} {name!r}. {hint}")


class TargetError(SabreError):
    """A log density broke its contract (shape, dtype, device, NaN, +inf, an exception of its own)."""


class NonFiniteError(SabreError):
    """A loss or gradient became NaN or infinite; the weights were left as they were."""


class CheckpointError(SabreError):
    """No checkpoint of a run can be trusted."""


class RunDirectoryError(SabreError):
    """A run directory is in use, missing, or holds another run."""
