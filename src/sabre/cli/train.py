"""sabre train: train a sampler, or go on with a run."""

import re
from collections.abc import Sequence
from pathlib import Path

from sabre.cli.train_flags import parse_train, requested_run
from sabre.errors import RunDirectoryError
from sabre.evaluation import scores_text
from sabre.presets import Preset
from sabre.run import Run, holds_checkpoint
from sabre.storage import RunDirectory, parse_duration
from sabre.train import resume, train

__all__ = ["SUMMARY", "main"]

SUMMARY = "train a sampler for a target, or go on with a run"


def main(argv: Sequence[str]) -> int:
    request = parse_train(argv)
    values = request.values
    limit = parse_duration(values["time_limit"]) if "time_limit" in values else None
    progress = not values.get("quiet", False)
    directory = request.directory_to_resume
    if directory is not None:
        run = resume(directory, time_limit=limit, progress=progress)
    else:
        asked = requested_run(values)
        directory = values.get("run_dir") or _free_directory(asked)
        print(f"run directory: {directory}", flush=True)
        run = train(asked.target, options=asked.options, run_dir=directory, time_limit=limit, progress=progress)
    _show(run, RunDirectory(directory))
    return 0


def _show(run: Run, directory: RunDirectory) -> None:
    """The figures of a finished run beside the exact log Z, or how to go on."""
    if not run.finished:
        print(
            f"stopped after step {run.step} of {run.options.steps}; go on with: sabre train {directory.path} --resume"
        )
    elif run.results:
        print(f"{scores_text(run.results)}\n{'report':<12}{directory.report_path}")
    else:
        print(f"finished, not evaluated; for the figures: sabre evaluate {directory.path}")


def _free_directory(asked: Preset) -> str:
    """runs/<target>-<method>-seed<seed>, with -2, -3, ... where a run has that name already."""
    name = re.sub(r"[^\w.+-]+", "-", f"{asked.target.name}-{asked.options.method}-seed{asked.options.seed}")
    path, number = Path("runs", name), 1
    while not _is_free(path):
        number += 1
        path = Path("runs", f"{name}-{number}")
    return str(path)


def _is_free(path: Path) -> bool:
    """Nothing is there, or a start that failed before its first checkpoint."""
    directory = RunDirectory(path)
    if not path.exists():
        return True
    if not directory.exists() or holds_checkpoint(directory):
        return False
    try:
        with directory.lock():
            return True
    except RunDirectoryError:
        return False
