"""Flags: what can be written behind a subcommand, and the flags that stand for `sabre.Options`."""

import dataclasses
from typing import NamedTuple

from sabre.cli.kinds import TEXT, TRUTH, WHOLE, Kind, kind_of
from sabre.options import Options, option_help

__all__ = ["DEVICE", "GROUPS", "JSON", "SCHEDULE", "Flag", "option_flags", "samples_flag", "seed_flag"]


class Flag(NamedTuple):
    """`name` is the key in Python and in config files; with dashes for underscores, the spelling on the command line.

    A `short` spelling is one letter. `default` is only shown: a flag that is not given has no value.
    """

    name: str
    kind: Kind
    help: str
    group: str = "options"
    default: object = None
    short: str = ""
    metavar: str = ""

    @property
    def shown_default(self) -> str:
        """The default as one would write it; empty if there is none to show."""
        if self.default is None or self.default is False:
            return ""
        return str(self.default).lower() if self.kind is TRUTH else str(self.default)

    @property
    def spelling(self) -> str:
        return "--" + self.name.replace("_", "-")


_PLACED = {
    "network": ("net", "width", "depth", "heads", "block", "order", "schedule", "eval_schedule", "informed"),
    "jumps": ("window", "jump_steps", "eval_jump_steps", "kappa", "moments"),
    "experience": (
        *("off_to_on", "buffer_size", "priority", "prefill", "kernel", "hamming_radius"),
        *("mcmc_ratio", "mcmc_interval", "mcmc_steps"),
    ),
    "run": ("device", "eval_interval", "eval_samples", "final_samples", "log_interval", "checkpoint_interval"),
}
_ELSEWHERE = {name for names in _PLACED.values() for name in names}
_METHOD = tuple(field.name for field in dataclasses.fields(Options) if field.name not in _ELSEWHERE)

GROUPS: dict[str, tuple[str, ...]] = {"method": _METHOD, **_PLACED}
"""The options of a run in the order of the help; one that is not placed elsewhere belongs to the method."""


def option_flags(defaults: Options) -> list[Flag]:
    """One flag per field of `Options`; `defaults` are the values shown."""
    fields = {field.name: field for field in dataclasses.fields(Options)}
    return [
        Flag(name, kind_of(fields[name].type), option_help(name), group, getattr(defaults, name))
        for group, names in GROUPS.items()
        for name in names
    ]


JSON = Flag("json", TRUTH, "print one JSON object and nothing else on standard output", default=False)
DEVICE = Flag("device", TEXT, option_help("device"), default="auto")


def samples_flag(text: str, default: int | None) -> Flag:
    return Flag("samples", WHOLE, text, default=default, short="n")


SCHEDULE = Flag("schedule", TEXT, "tokens revealed per step: k, or k_min-k_max", default="that of the run")


def seed_flag(text: str, default: object) -> Flag:
    return Flag("seed", WHOLE, text, default=default)
