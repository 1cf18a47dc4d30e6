"""The kinds of value that an option on the command line or in a config file can have."""

import collections.abc
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["NUMBER", "TEXT", "TRUTH", "WHOLE", "Kind", "RefusedValue", "kind_of", "optional"]


class RefusedValue(Exception):
    """A value that is not of its kind. No ValueError, which parsers would replace by a message of their own."""


class Kind(NamedTuple):
    """How a value is called, shown in the help, and made from text or from what YAML has read."""

    noun: str
    metavar: str
    convert: Callable[[Any], Any]


def _refused(value: object, noun: str) -> RefusedValue:
    return RefusedValue(f"is {value!r}; give {noun}")


def _whole(value: Any) -> int:
    try:
        if isinstance(value, bool | float):
            raise ValueError
        return int(value)
    except (TypeError, ValueError):
        raise _refused(value, "a whole number") from None


def _number(value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise _refused(value, "a number") from None


def _truth(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise _refused(value, "true or false")
    return text == "true"


def _text(value: Any) -> str:
    if isinstance(value, bool | list | dict) or value is None:
        raise _refused(value, "a text")
    return str(value)


def _numbers(value: Any) -> list[float]:
    parts = value.strip("[]() ").split(",") if isinstance(value, str) else value
    try:
        return [_number(part) for part in parts]
    except (TypeError, RefusedValue):
        raise _refused(value, "numbers with commas between them, such as 0.5,0,-0.5") from None


WHOLE = Kind("a whole number", "N", _whole)
NUMBER = Kind("a number", "X", _number)
TRUTH = Kind("true or false", "", _truth)
TEXT = Kind("a text", "TEXT", _text)
_NUMBERS = Kind("numbers with commas between them", "X,X,...", _numbers)


def optional(kind: Kind) -> Kind:
    """The same, or "none"."""

    def convert(value: Any) -> Any:
        return None if value is None or str(value).lower() in ("none", "null") else kind.convert(value)

    return kind._replace(convert=convert)


def kind_of(annotation: Any) -> Kind:
    """The kind of value that a type annotation of an option or a target's argument stands for."""
    if isinstance(annotation, types.UnionType):
        (rest,) = (part for part in typing.get_args(annotation) if part is not type(None))
        return optional(kind_of(rest))
    if typing.get_origin(annotation) is collections.abc.Sequence:
        return _NUMBERS
    return {int: WHOLE, float: NUMBER, bool: TRUTH, str: TEXT}[annotation]
