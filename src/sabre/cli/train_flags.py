"""What may follow `sabre train`, and what it asks for: a run that goes on, or a new one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sabre.cli.flags import GROUPS, Flag, option_flags
from sabre.cli.kinds import TEXT, TRUTH
from sabre.cli.parser import Syntax, parse_tokens, read_config
from sabre.cli.target_flags import all_target_flags, build_target, check_flags_of_target, target_flags, target_notes
from sabre.cli.tokens import Tokens, tokenise
from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.options import NETS, Options
from sabre.presets import Preset, make_preset
from sabre.storage import RunDirectory
from sabre.targets import TARGETS

__all__ = ["parse_train", "requested_run"]

_RUN_FLAGS = (
    Flag("run_dir", TEXT, "directory of the run (default: runs/<target>-<method>-seed<seed>)", "run", metavar="DIR"),
    Flag("resume", TRUTH, "go on with the run in the directory that is named instead of a target", "run"),
    Flag("time_limit", TEXT, "stop with a checkpoint after that time, such as 90s, 10m or 2h", "run", metavar="TIME"),
    Flag("preset", TEXT, "target and options of an experiment, such as paper/gmm40-d16", "run", metavar="NAME"),
    Flag("config", TEXT, "YAML file with the same names, such as batch_size: 64", "run", metavar="FILE"),
    Flag("quiet", TRUTH, "no progress display", "run"),
)
_SYNTAX = Syntax(
    "train",
    "Train a sampler for a target, or go on with a run. A run can be stopped at any moment (Ctrl-C, a time limit) and "
    "resumed bit for bit with: sabre train DIRECTORY --resume",
    "TARGET",
    f"{', '.join(sorted(TARGETS))}, or my_module:my_log_density; with --resume, a run directory",
    (),
    "Truth values are given as --informed or --no-informed. sabre list shows what can be named.",
)
_HINT = "The flags of a target are shown when it is named: sabre train ising --help."
_WITH_RESUME = ("target", "run_dir", "resume", "time_limit", "quiet")


class TrainRequest(NamedTuple):
    """The values that were given, by name."""

    values: dict[str, Any]

    @property
    def directory_to_resume(self) -> str | None:
        """The run to go on with, if --resume was given."""
        values = self.values
        if not values.get("resume"):
            return None
        named = [values[key] for key in ("target", "run_dir") if key in values]
        extra = [key for key in values if key not in _WITH_RESUME]
        if extra:
            raise InvalidArgumentError(
                f"--{extra[0].replace('_', '-')} cannot be given with --resume: a run goes on as it was started; "
                f"write sabre train {named[-1] if named else 'DIRECTORY'} --resume"
            )
        if len(named) != 1:
            raise InvalidArgumentError("--resume needs the directory of one run; write sabre train DIRECTORY --resume")
        return str(named[0])


def parse_train(argv: Sequence[str]) -> TrainRequest:
    """The words of the command line and of its config file, checked against what the target and a run take."""
    options = option_flags(Options())
    tokens = tokenise(argv, [*_RUN_FLAGS, *options, *all_target_flags()])
    path = tokens.get("config")
    names = [flag.name for flag in (*_RUN_FLAGS, *options, *all_target_flags())]
    config = {} if path is None else read_config(path, ["target", *names])
    target = tokens.positionals[0] if tokens.positionals else config.get("target")
    preset = tokens.get("preset") or config.get("preset")
    resume = (tokens.get("resume") or "").lower() == "true"
    own: list[Flag] = []
    if not resume:
        own = _flags_of(target, preset, tokens, config)
    flags = [*own, *option_flags(make_preset(str(preset)).options if preset and not resume else Options()), *_RUN_FLAGS]
    in_order = sorted(flags, key=lambda flag: ["target", *GROUPS].index(flag.group))
    epilog = _SYNTAX.epilog if own else f"{_SYNTAX.epilog} {_HINT}"
    # A run that goes on takes no flags of a target; that they are refused is said by the request.
    accepted = [*all_target_flags(), *in_order] if resume and not tokens.wants_help else in_order
    syntax = _SYNTAX._replace(flags=accepted, epilog=epilog, notes=target_notes(str(target)))
    return TrainRequest(parse_tokens(syntax, tokens))


def _flags_of(target: object, preset: object, tokens: Tokens, config: Mapping[str, Any]) -> list[Flag]:
    """The flags of the target that is named; with a preset there are none."""
    given = [flag.name for flag, _ in tokens.options] + list(config)
    arguments = [flag for flag in all_target_flags() if flag.name in given]
    if preset:
        if target or arguments:
            what = f"target {target!r}" if target else arguments[0].spelling
            raise InvalidArgumentError(
                f"{what} cannot be given with --preset: preset {preset} has a target of its own; leave out one of them"
            )
        return []
    if not target:
        if tokens.wants_help:
            return []
        raise InvalidArgumentError(
            f"no target is named; write {', '.join(sorted(TARGETS))}, my_module:my_log_density, or --preset NAME"
        )
    name = str(target)
    if name not in TARGETS and ":" not in name and RunDirectory(name).exists():
        raise InvalidArgumentError(f"{name} holds a run, it is no target; to go on with it, add --resume")
    own = target_flags(name)
    check_flags_of_target(tokens, name)
    for flag in arguments:
        if flag.name not in {known.name for known in own}:
            raise UnknownNameError(f"argument of target {name}", flag.name, [known.name for known in own])
    return own


def requested_run(values: Mapping[str, Any]) -> Preset:
    """Target and options: those of the preset or the defaults, overridden by what was given."""
    if values.get("net") == "custom":
        raise UnknownNameError("net", "custom", NETS)
    names = {name for group in GROUPS.values() for name in group}
    given = {name: value for name, value in values.items() if name in names}
    if "preset" in values:
        preset = make_preset(values["preset"])
        return Preset(preset.target, preset.options.replace(given))
    options = Options().replace(given)
    return Preset(build_target(str(values["target"]), values), options)
