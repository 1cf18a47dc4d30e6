"""The entry point: finds the subcommand, and turns errors into messages and exit codes."""

import importlib.metadata
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sabre.cli import evaluate, exact, listing, report, reproduce, sample, train
from sabre.cli.parser import HelpShown
from sabre.errors import SabreError, UnknownNameError

__all__ = ["COMMANDS", "Command", "main"]

_SHOWN_LINES = 6


class Command(NamedTuple):
    """A subcommand: what it does, in a line, and the function that does it and returns the exit code."""

    summary: str
    run: Callable[[Sequence[str]], int]


COMMANDS: dict[str, Command] = {
    "list": Command(listing.SUMMARY, listing.main),
    "train": Command(train.SUMMARY, train.main),
    "evaluate": Command(evaluate.SUMMARY, evaluate.main),
    "sample": Command(sample.SUMMARY, sample.main),
    "exact": Command(exact.SUMMARY, exact.main),
    "report": Command(report.SUMMARY, report.main),
    "reproduce": Command(reproduce.SUMMARY, reproduce.main),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 2 for a user's mistake, or 128 + the number of the signal that ended it."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except SabreError as error:
        if debug:
            traceback.print_exc()
        print(f"error: {_few_lines(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except BrokenPipeError:
        # Nobody reads on: the interpreter must find nothing left to flush into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_help())
        return 0
    if words[0] == "--version":
        print(f"sabre {importlib.metadata.version('sabre')}")
        return 0
    name, *rest = words
    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS)
    try:
        return COMMANDS[name].run(rest)
    except HelpShown:
        return 0


def _few_lines(text: str) -> str:
    """The message of an error that quotes a long one, cut."""
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= _SHOWN_LINES else [*lines[: _SHOWN_LINES - 1], "..."])


def _help() -> str:
    rows = [f"  {name:<12}{command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: sabre COMMAND [--option value ...]",
            "",
            "Learns to sample from a density that you can only evaluate, and shows the truth beside every estimate.",
            "",
            "commands:",
            *rows,
            "",
            "sabre COMMAND --help explains a command. With every command, --debug shows where an error came from.",
            "",
            "examples:",
            "  sabre train ising --size 16 --beta 0.4407 --run-dir runs/ising",
            "  sabre evaluate runs/ising",
            "  sabre --version",
        ]
    )
