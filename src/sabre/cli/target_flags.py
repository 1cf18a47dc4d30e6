"""Targets on the command line: the arguments of each as flags, and the target made from the values."""

import inspect
from collections.abc import Mapping
from typing import Any

from sabre.cli.flags import Flag
from sabre.cli.kinds import WHOLE, kind_of
from sabre.cli.tokens import Tokens
from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.targets import TARGETS, AbstractTarget, make_target

__all__ = ["all_target_flags", "build_target", "check_flags_of_target", "required", "target_flags", "target_notes"]

_CLASHES = ("seed",)
_IMPORTED = (
    Flag("dim", WHOLE, "number of sites (of a log density)", "target"),
    Flag("num_categories", WHOLE, "values per site, C (of a log density)", "target"),
)


def target_flags(name: str) -> list[Flag]:
    """One flag per argument of the target; what a run calls the same, `seed`, becomes --target-seed."""
    if ":" in name:
        return list(_IMPORTED)
    if name not in TARGETS:
        raise UnknownNameError("target", name, TARGETS)
    needed = required(name)
    flags = []
    for argument, parameter in inspect.signature(TARGETS[name]).parameters.items():
        kind = kind_of(parameter.annotation)
        text = f"{kind.noun}; must be given" if argument in needed else kind.noun
        default = None if argument in needed else parameter.default
        flags.append(Flag(_flag_name(argument), kind, text, "target", default))
    return flags


def target_notes(name: str) -> dict[str, str]:
    """What the help says above the flags of a target: its formula."""
    return {"target": inspect.getdoc(TARGETS[name]) or ""} if name in TARGETS else {}


def required(name: str) -> list[str]:
    """The arguments without a default."""
    parameters = inspect.signature(TARGETS[name]).parameters if name in TARGETS else {}
    return [argument for argument, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]


def all_target_flags() -> list[Flag]:
    """Every flag that some target has, once."""
    flags = [flag for name in ("module:function", *TARGETS) for flag in target_flags(name)]
    return list({flag.name: flag for flag in flags}.values())


def check_flags_of_target(tokens: Tokens, name: str) -> None:
    """Refuse flags that belong to other targets."""
    own = target_flags(name)
    for flag, _ in tokens.options:
        if flag.group == "target" and flag.name not in {known.name for known in own}:
            spellings = ", ".join(known.spelling for known in own)
            raise InvalidArgumentError(f"target {name} has no argument {flag.spelling}; it has {spellings}")


def build_target(name: str, values: Mapping[str, Any]) -> AbstractTarget:
    """The target of that name with those of the values that are its arguments."""
    missing = [f"--{argument}" for argument in required(name) if _flag_name(argument) not in values]
    if missing:
        raise InvalidArgumentError(f"target {name} needs {' and '.join(missing)}; sabre list shows all its arguments")
    own = {flag.name: flag.name.removeprefix("target_") for flag in target_flags(name)}
    return make_target({"name": name} | {own[key]: value for key, value in values.items() if key in own})


def _flag_name(argument: str) -> str:
    return f"target_{argument}" if argument in _CLASHES else argument
