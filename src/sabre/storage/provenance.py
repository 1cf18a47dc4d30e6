"""Where a result comes from: enough to make it again, nothing about whose machine it was."""

import functools
import importlib.metadata
import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["provenance", "source_commit"]


def provenance(command: Sequence[str]) -> dict[str, Any]:
    """What this process is: command, commit, versions, machine, date, as plain JSON values.

    `command` is the argument list of the process; absolute paths in it are shortened.
    """
    return {
        "command": shlex.join(_shorten(word) for word in command),
        "commit": source_commit(),
        "versions": {
            "sabre": _version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "machine": {
            "platform": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "accelerator": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        },
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _shorten(word: str) -> str:
    """An absolute path becomes relative to the working directory, or its last part; `--key=path` likewise."""
    key, separator, value = word.partition("=") if word.startswith("--") else ("", "", word)
    path = Path(value)
    if path.is_absolute():
        value = str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name
    return key + separator + value


def _version() -> str:
    try:
        return importlib.metadata.version("sabre")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@functools.cache
def source_commit() -> str | None:
    """The commit of the source tree that this file is tracked in, with `-dirty` if the package differs from it.

    Where it is not tracked, what SABRE_COMMIT says (of a copy without its history), else None. Asked once per process:
    what counts is the source that was imported.
    """
    return commit_of(Path(__file__), Path(__file__).parents[1]) or os.environ.get("SABRE_COMMIT")


def commit_of(file: Path, package: Path) -> str | None:
    """The commit that `file` is tracked in, with `-dirty` if anything in the folder `package` has changed since."""
    if _git(file.parent, "ls-files", "--error-unmatch", file.name) is None:
        return None
    commit = _git(package, "rev-parse", "HEAD")
    changed = _git(package, "status", "--porcelain", "--", ".")
    return commit if commit is None or changed is None else f"{commit}-dirty"


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"
