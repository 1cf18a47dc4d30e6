"""sabre exact: what is known about a target without any training."""

import math
from collections.abc import Sequence

from sabre.cli.flags import JSON
from sabre.cli.output import clean_stdout, print_json
from sabre.cli.parser import Syntax, parse_tokens
from sabre.cli.target_flags import all_target_flags, build_target, check_flags_of_target, target_flags, target_notes
from sabre.cli.tokens import tokenise
from sabre.errors import InvalidArgumentError, TargetError
from sabre.targets import AbstractTarget

__all__ = ["SUMMARY", "main"]

SUMMARY = "exact log Z of a target, where somebody knows it"
_SYNTAX = Syntax(
    "exact",
    "The exact log of the normalising constant: from a closed form or a transfer matrix, else by enumeration of all "
    "states; unknown where neither can be done.",
    "TARGET",
    "name (sabre list shows them) or my_module:my_log_density",
    (JSON,),
    "The flags depend on the target: sabre exact ising --help shows those of ising.",
)


def main(argv: Sequence[str]) -> int:
    tokens = tokenise(argv, [JSON, *all_target_flags()])
    name = tokens.positionals[0] if tokens.positionals else None
    if name is None and not tokens.wants_help:
        raise InvalidArgumentError("no target is named; write for example sabre exact ising --size 16 --beta 0.4407")
    syntax = _SYNTAX
    if name is not None:
        syntax = _SYNTAX._replace(flags=(*target_flags(name), JSON), notes=target_notes(name))
        check_flags_of_target(tokens, name)
    values = parse_tokens(syntax, tokens)
    assert name is not None
    with clean_stdout():
        target = build_target(name, values)
        log_z, source = _exact(target)
    if values.get("json"):
        print_json({"target": repr(target), "log_z_exact": log_z, "source": source})
    else:
        print(f"{'exact log Z':<12}{'unknown' if log_z is None else f'{log_z:.10g}'}\n{'source':<12}{source}")
    return 0


def _exact(target: AbstractTarget) -> tuple[float | None, str]:
    """log Z and how it was found."""
    log_z = target.log_z_exact
    if log_z is None:
        return None, "unknown"
    if log_z == -math.inf:
        raise TargetError(f"the log density of {target!r} is -inf on all states; allow some of them")
    return log_z, "enumeration" if target.closed_form_log_z() is None else "closed form"
