"""A cache on disk for tensors that are costly to make again; it may be deleted at any time."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
from torch import Tensor

from sabre.storage.files import strict_json, write_atomic
from sabre.storage.provenance import provenance

__all__ = ["Kept", "cache_directory", "kept_or_made"]

_OFF = "off"


class Kept(NamedTuple):
    """Tensors by name, and plain JSON values about them: what was asked for, what is known, where it comes from."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def cache_directory() -> Path | None:
    """SABRE_CACHE, else the user's directory for caches; None where SABRE_CACHE is "off"."""
    chosen = os.environ.get("SABRE_CACHE", "")
    if chosen == _OFF:
        return None
    base = os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "sabre"


def kept_or_made(kind: str, key: Mapping[str, Any], make: Callable[[], Kept]) -> Kept:
    """What the cache holds under this key, else what `make` makes, which it holds from now on.

    A file that is damaged, or made for another key, counts as missing. A cache that cannot be written is done without.
    """
    directory = cache_directory()
    if directory is None:
        return make()
    asked = json.loads(strict_json(dict(key)))
    digest = hashlib.sha256(json.dumps([kind, asked], sort_keys=True).encode()).hexdigest()
    path = directory / kind / f"{digest[:20]}.safetensors"
    found = _read(path, asked)
    if found is not None:
        return found
    made = make()
    _write(path, asked, made)
    return made


def _read(path: Path, asked: dict[str, Any]) -> Kept | None:
    try:
        with safetensors.safe_open(path, "pt") as file:
            content = json.loads((file.metadata() or {})["sabre"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, KeyError, ValueError, safetensors.SafetensorError):
        return None
    return Kept(tensors, content["facts"]) if content["key"] == asked else None


def _write(path: Path, asked: dict[str, Any], made: Kept) -> None:
    content = {"key": asked, "facts": made.facts, "provenance": provenance(sys.argv)}
    data = safetensors.torch.save(made.tensors, metadata={"sabre": strict_json(content)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, data)
    except OSError as error:
        print(f"warning: the cache cannot hold {path.name} ({error.strerror or error})", file=sys.stderr)
