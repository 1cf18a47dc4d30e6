"""The manifest of a checkpoint: size and SHA-256 of each of its files."""

import hashlib
import json
from pathlib import Path
from typing import Any

from sabre.errors import CheckpointError

__all__ = ["MANIFEST", "make_manifest", "read_verified"]

MANIFEST = "manifest.json"
_FORMAT = 1


def make_manifest(files: dict[str, bytes]) -> bytes:
    """The manifest of the given files, as the bytes of its own file."""
    entries = {name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    return json.dumps({"format": _FORMAT, "files": entries}).encode()


def read_verified(directory: Path) -> dict[str, bytes]:
    """The bytes of every file that the manifest lists; CheckpointError names the first one that is not as listed."""
    files = {}
    for name, entry in _read_manifest(directory / MANIFEST).items():
        path = directory / name
        data = _read(path)
        if len(data) != entry["size"]:
            raise CheckpointError(f"{path} has {len(data)} bytes, {entry['size']} were written; use another checkpoint")
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise CheckpointError(f"{path} is damaged (its SHA-256 is not the one written); use another checkpoint")
        files[name] = data
    return files


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}; use another checkpoint") from error


def _read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    data = _read(path)
    try:
        content = json.loads(data)
        version, entries = content["format"], content["files"]
        well_formed = all(
            Path(name).name == name and entry.keys() == {"size", "sha256"} for name, entry in entries.items()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged (not a manifest); use another checkpoint") from error
    if version != _FORMAT:
        raise CheckpointError(
            f"{path} has format {version!r}, this sabre reads {_FORMAT}; use the version of sabre that wrote it"
        )
    if not well_formed:
        raise CheckpointError(f"{path} is damaged (an entry is not one of a file); use another checkpoint")
    return dict(entries)
