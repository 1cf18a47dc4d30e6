"""The words of a command line, sorted into options and positional arguments before they are parsed."""

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sabre.cli.flags import Flag
from sabre.cli.kinds import TRUTH
from sabre.errors import InvalidArgumentError

__all__ = ["Tokens", "tokenise", "unknown_option"]

_TRUTH_VALUES = ("true", "false")


class Tokens(NamedTuple):
    """`options` holds (flag, value as text) in the order given."""

    options: list[tuple[Flag, str]]
    positionals: list[str]
    wants_help: bool

    def get(self, name: str) -> str | None:
        """The last value given for the flag of that name."""
        values = [value for flag, value in self.options if flag.name == name]
        return values[-1] if values else None


def tokenise(argv: Sequence[str], flags: Iterable[Flag]) -> Tokens:
    """Sort the words: `--key value`, `--key=value`, `-k value`, `--truth`, `--no-truth`; the rest is positional.

    Underscores may stand for dashes. A word that looks like an option must be one: the error names the nearest.
    """
    known = {spelling: flag for flag in flags for spelling in _spellings(flag)}
    words, options, positionals, wants_help = list(argv), list[tuple[Flag, str]](), list[str](), False
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
            wants_help = True
        elif not word.startswith("-") or word == "-":
            positionals.append(word)
        else:
            options.append(_option(word, words, known))
    return Tokens(options, positionals, wants_help)


def unknown_option(spelling: str, known: Iterable[str]) -> InvalidArgumentError:
    """The error for an option that does not exist."""
    near = difflib.get_close_matches(spelling, sorted(known), n=1)
    hint = f"did you mean {near[0]}?" if near else "--help lists the options"
    return InvalidArgumentError(f"unknown option {spelling}; {hint}")


def _spellings(flag: Flag) -> list[str]:
    negation = ["--no-" + flag.spelling[2:]] if flag.kind is TRUTH else []
    return [flag.spelling, *negation, *([f"-{flag.short}"] if flag.short else [])]


def _option(word: str, rest: list[str], known: dict[str, Flag]) -> tuple[Flag, str]:
    """The flag that `word` spells, with its value, taken off `rest` where it is a word of its own."""
    spelling, has_value, value = word.partition("=")
    spelling = spelling.replace("_", "-")
    if spelling not in known:
        raise unknown_option(spelling, known)
    flag = known[spelling]
    if spelling.startswith("--no-") and flag.kind is TRUTH:
        if has_value:
            raise InvalidArgumentError(f"{spelling} takes no value; leave out ={value}")
        return flag, "false"
    if has_value:
        return flag, value
    if flag.kind is TRUTH:
        return flag, rest.pop(0) if rest and rest[0].lower() in _TRUTH_VALUES else "true"
    if not rest or rest[0] == "--help" or rest[0].partition("=")[0].replace("_", "-") in known:
        raise InvalidArgumentError(f"{spelling} needs a value; give {flag.kind.noun}")
    return flag, rest.pop(0)
