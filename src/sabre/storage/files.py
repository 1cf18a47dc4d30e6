"""Files that survive a crash: what is written is wholly there or not there at all."""

import json
import math
import os
from pathlib import Path
from typing import Any

__all__ = ["strict_json", "sync", "write_atomic", "write_synced"]


def write_synced(path: Path, data: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())


def sync(path: Path) -> None:
    """Wait until the disk has all of a file, or knows the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file in one step: readers see the old content or the new, also after a crash."""
    temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
    try:
        write_synced(temporary, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)


def strict_json(value: Any, indent: int | None = None) -> str:
    """JSON that every parser reads: numbers that are not finite become null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
