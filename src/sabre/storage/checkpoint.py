"""Checkpoints that are trusted only after every byte of them has been verified.

    step-000001000/<group>.safetensors    the tensors of one group
    step-000001000/state.json             the step and what is not a tensor
    step-000001000/manifest.json          format version, size and SHA-256 of the files above

A checkpoint is built in a hidden directory and renamed into place once the disk has all of it, so a directory with the
final name is complete. While a step is saved again, its earlier copy waits as `step-000001000.old`.
"""

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from sabre.errors import CheckpointError, InvalidArgumentError
from sabre.storage.files import sync, write_synced
from sabre.storage.manifest import MANIFEST, make_manifest, read_verified

__all__ = ["Checkpoint", "latest_checkpoint", "load_checkpoint", "save_checkpoint"]

_KEPT = 2
_STATE = "state.json"
_TENSORS = ".safetensors"
_TEMPORARY = ".tmp-"
_DAMAGED = "damaged-"
_NAME = re.compile(r"step-(\d{9,})(\.old)?")


@dataclass(frozen=True)
class Checkpoint:
    """Everything from which a run goes on: tensors by group and name, and a state of plain JSON values."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


def save_checkpoint(
    root: Path, step: int, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]
) -> Path:
    """Save a checkpoint of `step` in `root`; afterwards remove what is older than it and the one before it.

    1. Remove what an interrupted save has left. 2. Write every file into a hidden directory and sync it. 3. Rename
    it into place and sync `root`. 4. Only now remove older checkpoints. Newer ones are never touched. If the disk
    refuses, the older checkpoints are as they were and a CheckpointError says why.
    """
    files = _encode(step, tensors, state)
    target = root / f"step-{step:09d}"
    temporary = root / f"{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for leftover in root.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        temporary.mkdir()
        for name, data in files.items():
            write_synced(temporary / name, data)
        sync(temporary)
        _put_in_place(temporary, target)
    except OSError as error:
        raise CheckpointError(
            f"cannot save a checkpoint of step {step} in {root}: {error.strerror or error}. Earlier checkpoints are "
            "untouched; free space or fix the directory, then resume from them"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _remove_older(root, step)
    return target


def load_checkpoint(path: Path) -> Checkpoint:
    """Load a checkpoint after verifying every file; CheckpointError names the file that is wrong."""
    files = read_verified(path)
    try:
        content = json.loads(files[_STATE])
        tensors = {
            name.removesuffix(_TENSORS): safetensors.torch.load(data)
            for name, data in files.items()
            if name.endswith(_TENSORS)
        }
        return Checkpoint(content["step"], tensors, content["state"])
    except (KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path} is not a checkpoint of sabre ({error!r}); use another checkpoint") from error


def latest_checkpoint(root: Path, warn: Callable[[str], None], *, set_aside: bool = False) -> Checkpoint | None:
    """The newest checkpoint in `root` that verifies, None if there is none; `warn` hears of each that is refused.

    A run that goes on from an older one has those that were refused `set_aside` under another name, so that they do
    not count among the checkpoints that are kept.
    """
    candidates = _candidates(root)
    refused: list[Path] = []
    for path in candidates:
        try:
            found = load_checkpoint(path)
        except CheckpointError as error:
            warn(f"{error}. Trying the checkpoint before it")
            refused.append(path)
            continue
        for damaged in refused if set_aside else ():
            damaged.rename(damaged.with_name(f"{_DAMAGED}{uuid.uuid4().hex}-{damaged.name}"))
        return found
    if candidates:
        raise CheckpointError(
            f"none of the {len(candidates)} checkpoints in {root} can be trusted; restore one from a copy or start "
            "again in another --run-dir"
        )
    return None


def _encode(step: int, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a checkpoint by name. Tensors are copied, since the format has no shared or strided memory."""
    files = {}
    for group, named in tensors.items():
        if not re.fullmatch(r"[A-Za-z0-9_-]+", group):
            raise InvalidArgumentError(f"tensor group {group!r} cannot be a file name; use letters, digits, - and _")
        plain = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in named.items()
        }
        files[group + _TENSORS] = safetensors.torch.save(plain)
    state = dict(state)
    try:
        text = json.dumps({"step": step, "state": state}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the state of a checkpoint must be finite JSON values ({error})") from error
    if json.loads(text)["state"] != state:
        raise InvalidArgumentError("the state of a checkpoint must survive JSON unchanged: lists, not tuples; str keys")
    files[_STATE] = text.encode()
    files[MANIFEST] = make_manifest(files)
    return files


def _put_in_place(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`. At every moment some complete checkpoint has a name that loading looks at."""
    aside = target.with_name(target.name + ".old")
    if target.exists():
        _discard(aside)
        target.rename(aside)
    temporary.rename(target)
    sync(target.parent)
    _discard(aside)


def _discard(path: Path) -> None:
    """Remove a checkpoint; half-removed it no longer bears the name of one."""
    if path.exists():
        hidden = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")
        os.rename(path, hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def _candidates(root: Path) -> list[Path]:
    """Checkpoints of `root`, newest first; the copy set aside comes after the one that replaces it."""
    matches = [(_NAME.fullmatch(path.name), path) for path in (root.iterdir() if root.is_dir() else ())]
    found = [(int(match[1]), match[2] is None, path) for match, path in matches if match]
    return [path for _, _, path in sorted(found, reverse=True)]


def _remove_older(root: Path, step: int) -> None:
    """Keep the checkpoint of `step` and the one before it; what the disk refuses to remove now waits for next time."""
    older = [path for path in _candidates(root) if int(path.name[5:].removesuffix(".old")) <= step]
    for path in older[_KEPT:]:
        try:
            _discard(path)
        except OSError:
            return
