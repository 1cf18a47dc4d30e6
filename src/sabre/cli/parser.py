"""Parsing: from flags and words to the values that were given, by the command line or by a config file."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonargparse import ArgumentParser, DefaultHelpFormatter

from sabre.cli.flags import Flag
from sabre.cli.kinds import RefusedValue
from sabre.cli.tokens import Tokens, tokenise
from sabre.errors import InvalidArgumentError, UnknownNameError

__all__ = ["HelpShown", "Syntax", "parse", "parse_tokens", "read_config"]


class Syntax(NamedTuple):
    """What may follow a subcommand. `positional` and `about` are its one positional argument and its explanation.

    `notes` explains groups of flags.
    """

    command: str
    summary: str
    positional: str
    about: str
    flags: Sequence[Flag]
    epilog: str = ""
    notes: Mapping[str, str] = {}


class HelpShown(Exception):
    """The help was asked for and printed; there is nothing else to do."""


class _Formatter(DefaultHelpFormatter):
    """Shows the help as it was written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=112)

    def _get_help_string(self, action: argparse.Action) -> str:
        return action.help or ""


def parse(syntax: Syntax, argv: Sequence[str]) -> dict[str, Any]:
    """The values that were given, by name; the positional argument must be there."""
    return parse_tokens(syntax, tokenise(argv, syntax.flags), needs_positional=True)


def parse_tokens(syntax: Syntax, tokens: Tokens, needs_positional: bool = False) -> dict[str, Any]:
    """The values that were given, by name. Those of a config file stand behind those of the command line."""
    parser = _parser(syntax)
    if tokens.wants_help:
        print(parser.format_help(), end="")
        raise HelpShown
    if len(tokens.positionals) > 1:
        raise InvalidArgumentError(
            f"{tokens.positionals[1]!r} is one argument too many; sabre {syntax.command} takes one {syntax.positional}"
        )
    if needs_positional and not tokens.positionals:
        what = f"sabre {syntax.command}"
        raise InvalidArgumentError(f"{what} needs a {syntax.positional.lower()}; write for example {what} runs/ising")
    config_first = sorted(tokens.options, key=lambda option: option[0].name != "config")
    words = [f"{flag.spelling}={value}" for flag, value in config_first]
    try:
        values: dict[str, Any] = parser.parse_args([*words, *tokens.positionals]).as_dict()
    except (RefusedValue, argparse.ArgumentError) as error:
        raise InvalidArgumentError(re.sub(r"\s+", " ", str(error))) from error
    values.pop("config", None)
    return values


def read_config(path: str, known: Iterable[str]) -> dict[str, Any]:
    """The values in a config file, whose keys must be among `known`."""
    try:
        content = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"config file {path} cannot be read ({error}); check the path") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1}: {getattr(error, 'problem', 'faulty')})"
        raise InvalidArgumentError(f"config file {path} is not YAML{where}; correct it") from error
    if not isinstance(content, dict):
        raise InvalidArgumentError(f"config file {path} holds no options; write lines such as steps: 3000")
    names = set(known)
    for key in content:
        if str(key).replace("-", "_") not in names:
            raise UnknownNameError(f"option in {path}:", str(key), names)
    return {str(key).replace("-", "_"): value for key, value in content.items()}


def _parser(syntax: Syntax) -> ArgumentParser:
    words = ("sabre", syntax.command, syntax.positional, "[--option value ...]" if syntax.flags else "")
    parser = ArgumentParser(
        prog=f"sabre {syntax.command}",
        usage=" ".join(filter(None, words)),
        description=syntax.summary,
        epilog=syntax.epilog,
        formatter_class=_Formatter,
        exit_on_error=False,
        allow_abbrev=False,
        print_config=None,
    )
    if syntax.positional:
        name = syntax.positional.lower().replace(" ", "_")
        parser.add_argument(name, nargs="?", default=argparse.SUPPRESS, metavar=syntax.positional, help=syntax.about)
    groups: dict[str, Any] = {"options": parser}
    for flag in syntax.flags:
        if flag.group not in groups:
            groups[flag.group] = parser.add_argument_group(flag.group, syntax.notes.get(flag.group))
        _add(groups[flag.group], flag)
    return parser


def _converter(flag: Flag) -> Callable[[Any], Any]:
    """What makes the value, with the name of the flag in front of its complaints."""

    def convert(value: Any) -> Any:
        try:
            return flag.kind.convert(value)
        except RefusedValue as refused:
            raise RefusedValue(f"{flag.spelling} {refused}") from None

    return convert


def _add(group: Any, flag: Flag) -> None:
    if flag.name == "config":
        group.add_argument("--config", action="config", metavar="FILE", help=flag.help)
        return
    spellings = [*([f"-{flag.short}"] if flag.short else []), flag.spelling]
    shows_default = flag.shown_default and "(default" not in flag.help
    text = f"{flag.help} (default: {flag.shown_default})" if shows_default else flag.help
    group.add_argument(
        *spellings,
        type=_converter(flag),
        default=argparse.SUPPRESS,
        metavar=flag.metavar or flag.kind.metavar,
        help=text.replace("%", "%%"),
    )
