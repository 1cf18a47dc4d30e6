"""The front door: train a sampler for a target, or go on with a run."""

import contextlib
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from torch import nn

from sabre.errors import InvalidArgumentError, RunDirectoryError
from sabre.options import Options
from sabre.run import Run, holds_checkpoint, open_state
from sabre.storage import RunDirectory, parse_duration, provenance
from sabre.targets import AbstractTarget
from sabre.training import ProgressDisplay, TrainingLoop, TrainingState

__all__ = ["resume", "train"]


def train(
    target: AbstractTarget,
    *,
    method: str | None = None,
    net: str | nn.Module | None = None,
    steps: int | None = None,
    seed: int | None = None,
    run_dir: str | Path | None = None,
    options: Options | None = None,
    time_limit: str | float | None = None,
    progress: bool = True,
) -> Run:
    """Train a sampler for the target.

    `method`, `net`, `steps` and `seed` override those of `options`. `net` may be a network of your own that maps
    masked states (rows, tokens), with the value C for the mask, to logits (rows, tokens, C). With a `run_dir`, the
    run can be stopped and resumed at any moment and leaves its metrics, checkpoints, results and report there.
    `time_limit` ("10m", "2h", seconds) stops it early with a checkpoint; SIGINT and SIGTERM do the same and end the
    program with exit code 130 or 143.
    """
    if not isinstance(target, AbstractTarget):
        raise InvalidArgumentError(
            f"target is a {type(target).__name__}; wrap a function as sabre.Target(f, dim=..., num_categories=...)"
        )
    named = {"method": method, "steps": steps, "seed": seed, "net": "custom" if isinstance(net, nn.Module) else net}
    chosen = (options or Options()).replace({key: value for key, value in named.items() if value is not None})
    custom = net if isinstance(net, nn.Module) else None
    if run_dir is None:
        with _explained_memory():
            return _train(TrainingState(target, chosen, custom), None, time_limit, progress)
    directory = RunDirectory(run_dir)
    _refuse_another_run(directory)
    with _explained_memory():
        state = TrainingState(target, chosen, custom)
    with directory.lock(), _explained_memory():
        # Again, now that nobody else can write here: another process may have trained in the meantime.
        _refuse_another_run(directory)
        if directory.exists():
            directory.truncate_metrics(0)
        directory.write_config({"target": target.spec, "options": chosen.as_dict()})
        return _train(state, directory, time_limit, progress)


def resume(
    run_dir: str | Path,
    *,
    target: AbstractTarget | None = None,
    net: nn.Module | None = None,
    time_limit: str | float | None = None,
    progress: bool = True,
) -> Run:
    """Go on with a run from its newest checkpoint, bit for bit as if it had never stopped."""
    directory = RunDirectory(run_dir)
    if not directory.exists():
        raise RunDirectoryError(f"{directory.path} holds no run (it has no config.yaml); check the path")
    with directory.lock(), _explained_memory():
        state = open_state(directory, target=target, net=net, device=None, going_on=True)
        directory.truncate_metrics(state.step)
        return _train(state, directory, time_limit, progress)


def _refuse_another_run(directory: RunDirectory) -> None:
    """A start that failed before its first checkpoint is no run yet: its directory may be used again."""
    if directory.is_foreign():
        raise RunDirectoryError(
            f"{directory.path} holds files of something else under the names that a run needs (config.yaml, "
            "metrics.jsonl, checkpoints, ...); choose another directory"
        )
    if holds_checkpoint(directory):
        raise RunDirectoryError(
            f"{directory.path} holds a run already; go on with it (sabre.resume, --resume) or choose another directory"
        )


@contextlib.contextmanager
def _explained_memory() -> Iterator[None]:
    """What the allocators say of memory that is not there, as an error for users."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search(r"(?i)allocate memory|out of memory", str(error)):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidArgumentError(
            f"there is not enough memory ({reason}); choose a smaller batch_size, buffer_size, eval_samples or network"
        ) from error


def _train(state: TrainingState, directory: RunDirectory | None, time_limit: str | float | None, progress: bool) -> Run:
    seconds = parse_duration(time_limit) if isinstance(time_limit, str) else time_limit
    if seconds is not None and not seconds >= 0:
        raise InvalidArgumentError(f"time_limit is {time_limit!r}; give seconds, or a duration such as 90s, 10m or 2h")
    if not state.is_finished:
        state.sessions.append({"from_step": state.step} | provenance(sys.argv))
    with ProgressDisplay(state.options.steps, state.step, enabled=progress) as display:
        loop = TrainingLoop(state, directory, display)
        received = loop.run(seconds)
        if not state.is_finished:
            saved = "; give a run_dir to keep what is stopped"
            if directory is not None:
                saved = f"; saved in {directory.path}, go on with sabre.resume or --resume"
            display.note(f"stopped at step {state.step} of {state.options.steps}{saved}")
    if received == signal.SIGINT:
        raise KeyboardInterrupt
    if received is not None:
        raise SystemExit(128 + received)
    run = Run(state, directory, loop.records)
    if state.is_finished and directory is not None and state.options.final_samples:
        run.evaluate(state.options.final_samples)
        run.report()
    return run
