"""sabre exact: what is known about a target without any training."""

import math
from collections.abc import Mapping, Sequence

from sabre.cli.flags import JSON
from sabre.cli.output import clean_stdout, print_json
from sabre.cli.parser import Syntax, parse_tokens
from sabre.cli.target_flags import all_target_flags, build_target, check_flags_of_target, target_flags, target_notes
from sabre.cli.tokens import tokenise
from sabre.errors import InvalidArgumentError, TargetError
from sabre.targets import AbstractTarget

__all__ = ["SUMMARY", "main"]

SUMMARY = "exact log Z and energy of a target, where somebody knows them"
_SYNTAX = Syntax(
    "exact",
    "The exact log of the normalising constant: from a closed form or a transfer matrix, else by enumeration of all "
    "states, else by elimination of the sites of a model of pairs; unknown where none of them can be done. Where they "
    "are known, mean energy and heat capacity too, of H with log density = -beta H.",
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
        found = _exact(target)
    if values.get("json"):
        print_json({"target": repr(target), **found})
    else:
        print(_text(found))
    return 0


def _exact(target: AbstractTarget) -> dict[str, float | str | None]:
    """log Z, how it was found, and the energies; None is what is not known."""
    if target.log_z_exact == -math.inf:
        raise TargetError(f"the log density of {target!r} is -inf on all states; allow some of them")
    energy = target.exact_energy()
    return {
        "log_z_exact": target.log_z_exact,
        "source": target.log_z_source,
        "mean_energy": None if energy is None else energy.mean_energy,
        "heat_capacity": None if energy is None else energy.heat_capacity,
    }


def _text(found: Mapping[str, float | str | None]) -> str:
    """A line for each of them; energies are left out where they are not known."""
    log_z, energy, capacity = (found[key] for key in ("log_z_exact", "mean_energy", "heat_capacity"))
    lines = {"exact log Z": "unknown" if log_z is None else f"{log_z:.10g}", "source": found["source"]}
    lines |= {"mean energy": f"{energy:.10g}"} if energy is not None else {}
    lines |= {"heat capacity": f"{capacity:.10g}"} if capacity is not None else {}
    width = max(map(len, lines)) + 1
    return "\n".join(f"{name:<{width}}{value}" for name, value in lines.items())
