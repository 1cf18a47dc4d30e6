"""sabre list: everything that can be named on the command line."""

import textwrap
from collections.abc import Iterable, Sequence

from sabre.cli.parser import Syntax, parse_tokens
from sabre.cli.target_flags import required, target_flags
from sabre.cli.tokens import tokenise
from sabre.mcmc import KERNELS
from sabre.options import METHODS, NETS
from sabre.presets import PRESETS, make_preset
from sabre.processes import ORDERS
from sabre.reproduce import EXPERIMENTS
from sabre.targets import TARGETS

__all__ = ["SUMMARY", "main"]

SUMMARY = "show targets with their arguments, methods, networks, orders, kernels, presets, experiments"
_SYNTAX = Syntax("list", "Everything that can be named on the command line.", "", "", ())


def main(argv: Sequence[str]) -> int:
    parse_tokens(_SYNTAX, tokenise(argv, ()))
    targets = [*((name, _arguments(name)) for name in sorted(TARGETS)), ("module:function", _IMPORTED)]
    _table("targets", targets)
    _names("methods (--method)", METHODS)
    _names("networks (--net)", NETS)
    _names("orders (--order)", ("auto", *ORDERS))
    _names("kernels (--kernel)", ("auto", *sorted(KERNELS)))
    _table("presets (--preset)", [(name, _preset(name)) for name in PRESETS])
    _table("experiments (sabre reproduce)", [(name, one.title) for name, one in EXPERIMENTS.items()])
    return 0


_IMPORTED = "--dim N --num-categories N  (a log density, a target, or a function that makes one)"


def _arguments(name: str) -> str:
    """The flags of a target: those that must be given with their kind, the others with their default."""
    needed = required(name)
    return " ".join(
        f"{flag.spelling} {flag.kind.metavar}"
        if flag.name in needed
        else f"[{flag.spelling} {flag.shown_default or flag.kind.metavar}]"
        for flag in target_flags(name)
    )


def _preset(name: str) -> str:
    preset = make_preset(name)
    return f"{preset.target!r}, {preset.options.net}, {preset.options.steps} steps"


def _table(title: str, rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows) + 2
    print(title)
    for name, text in rows:
        print(f"  {name:<{width}}{text}")
    print()


def _names(title: str, names: Iterable[str]) -> None:
    indent = "  "
    print(title)
    print(textwrap.fill(", ".join(names), 100, initial_indent=indent, subsequent_indent=indent))
    print()
