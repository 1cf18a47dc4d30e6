"""Durability: whatever happens to a process or a disk, the newest complete checkpoint is found and no other is read."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch

import sabre.storage.checkpoint as checkpoint_module
from forking import exit_status, forked
from sabre.errors import CheckpointError, InvalidArgumentError
from sabre.storage import latest_checkpoint, load_checkpoint, save_checkpoint

STATE = {"beta": 0.1 + 0.2, "seed": 2**60 + 1, "names": ["a", None, True], "nested": {"x": -1e-300}}


def tensors_of(step: int) -> dict[str, dict[str, torch.Tensor]]:
    return {"model": {"w": torch.full((50,), float(step))}, "noise": {"rollout": torch.arange(9, dtype=torch.uint8)}}


def refuse_warning(message: str) -> None:
    raise AssertionError(message)


def test_checkpoint_round_trip_is_bit_for_bit(tmp_path):
    bits = torch.tensor([0x7FC12345, -0x3FFFFF, -(2**31), 1, 0x7F800000], dtype=torch.int32)  # NaN payloads, -0.0, ...
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    model = {
        "float32": bits.view(torch.float32),
        "float64": torch.tensor([0.1, -0.0, float("inf"), 5e-324], dtype=torch.float64),
        "bfloat16": torch.tensor([1.5, -2.0]).bfloat16(),
        "int64": torch.tensor([-(2**63), 2**63 - 1]),
        "int32": bits,
        "uint8": torch.arange(256, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(-3.25, dtype=torch.float64),
        "empty": torch.zeros(0, 5),
        "transposed": base.T,
        "shared": base[1:],
        "whole": base,
        "grad": torch.nn.Parameter(torch.ones(2)),
    }
    path = save_checkpoint(tmp_path, 1000, {"model": model, "empty": {}}, STATE)
    assert path == tmp_path / "step-000001000"
    loaded = load_checkpoint(path)
    assert loaded.step == 1000
    assert loaded.state == STATE
    assert loaded.tensors.keys() == {"model", "empty"}
    assert loaded.tensors["model"].keys() == model.keys()
    for name, tensor in model.items():
        again = loaded.tensors["model"][name]
        assert again.dtype == tensor.dtype
        assert again.shape == tensor.shape
        flat, flat_again = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (tensor, again))
        assert torch.equal(flat, flat_again), name


def test_only_the_last_two_checkpoints_stay_and_leftovers_go(tmp_path):
    assert latest_checkpoint(tmp_path / "nothing", refuse_warning) is None
    (tmp_path / ".tmp-stale").mkdir()
    for step in (5, 20, 100, 1000):
        save_checkpoint(tmp_path, step, tensors_of(step), {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000000100", "step-000001000"]
    assert latest_checkpoint(tmp_path, refuse_warning).step == 1000


def test_saving_an_earlier_step_removes_neither_it_nor_a_newer_one(tmp_path):
    for step in (10, 20, 30):
        save_checkpoint(tmp_path, step, tensors_of(step), {})
    save_checkpoint(tmp_path, 15, tensors_of(15), {})
    assert [p.name[-2:] for p in sorted(tmp_path.iterdir())] == ["15", "20", "30"]


def test_the_same_step_is_replaced_and_the_copy_set_aside_is_a_checkpoint(tmp_path):
    save_checkpoint(tmp_path, 7, tensors_of(7), {"take": 1})
    path = save_checkpoint(tmp_path, 7, tensors_of(8), {"take": 2})
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000007"]
    shutil.copytree(save_checkpoint(tmp_path / "b", 7, {}, {"take": 0}), tmp_path / "step-000000007.old")
    shutil.rmtree(tmp_path / "b")
    assert latest_checkpoint(tmp_path, refuse_warning).state == {"take": 2}
    shutil.rmtree(tmp_path / "step-000000007.old")
    path.rename(tmp_path / "step-000000007.old")
    assert latest_checkpoint(tmp_path, refuse_warning).state == {"take": 2}
    save_checkpoint(tmp_path, 7, tensors_of(9), {"take": 3})
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000007"]


def test_what_cannot_come_back_from_json_or_be_a_file_is_refused_before_writing(tmp_path):
    for state in ({"x": float("nan")}, {"x": float("inf")}, {"x": (1, 2)}, {"x": torch.ones(1)}, {"x": {1: 2}}):
        with pytest.raises(InvalidArgumentError, match="state of a checkpoint"):
            save_checkpoint(tmp_path, 1, {}, state)
    with pytest.raises(InvalidArgumentError, match=r"'\.\./x'"):
        save_checkpoint(tmp_path, 1, {"../x": {}}, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing_write", [0, 1, 3])
def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch, failing_write):
    save_checkpoint(tmp_path, 1, tensors_of(1), {})
    shipped, calls = checkpoint_module.write_synced, []

    def write(path, data):
        calls.append(path)
        shipped(path, data[: len(data) // 2] if len(calls) == failing_write + 1 else data)
        if len(calls) == failing_write + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint_module, "write_synced", write)
    with pytest.raises(CheckpointError, match=f"{tmp_path}: No space left on device.*free space"):
        save_checkpoint(tmp_path, 2, tensors_of(2), {})
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000001"]
    assert latest_checkpoint(tmp_path, refuse_warning).step == 1


def test_a_file_size_limit_of_the_system_leaves_the_old_checkpoint(tmp_path):
    save_checkpoint(tmp_path, 1, tensors_of(1), {})

    def save_too_much():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        with pytest.raises(CheckpointError, match="File too large"):
            save_checkpoint(tmp_path, 2, {"model": {"w": torch.ones(5000)}}, {})

    assert exit_status(forked(save_too_much)) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000001"]
    assert latest_checkpoint(tmp_path, refuse_warning).step == 1


def damaged_copies(path: Path):
    """Every single-bit flip of the manifest, some of each other file, then truncations and losses."""
    for file in sorted(path.iterdir()):
        data = file.read_bytes()
        bits = (
            range(8 * len(data)) if file.name == "manifest.json" else random.Random(1).sample(range(8 * len(data)), 40)
        )
        for bit in bits:
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            yield file, bytes(flipped)
        yield file, data[:-1]
        yield file, b""
        yield file, None


def overwrite(file: Path, data: bytes) -> None:
    """Change a file in place: truncating it first would cost a flush of the disk each time."""
    file.touch()
    with file.open("r+b") as handle:
        handle.write(data)
        handle.truncate()


def test_every_damage_is_refused_by_name_and_the_one_before_is_used(tmp_path):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, {"model": {"w": torch.ones(2)}}, {"step": step})
    newest, count = tmp_path / "step-000000002", 0
    for file, damaged in damaged_copies(newest):
        original = file.read_bytes()
        file.unlink() if damaged is None else overwrite(file, damaged)
        with pytest.raises(CheckpointError) as refused:
            load_checkpoint(newest)
        assert str(newest if file.name == "manifest.json" else file) in str(refused.value)
        if not damaged:
            warnings: list[str] = []
            assert latest_checkpoint(tmp_path, warnings.append).step == 1
            assert warnings == [f"{refused.value}. Trying the checkpoint before it"]
        overwrite(file, original)
        count += 1
    assert count > 2000
    assert latest_checkpoint(tmp_path, refuse_warning).step == 2


def test_nothing_to_trust_is_an_error(tmp_path):
    path = save_checkpoint(tmp_path, 3, tensors_of(3), {})
    (path / "manifest.json").unlink()
    warnings: list[str] = []
    with pytest.raises(CheckpointError, match=r"none of the 1 checkpoints.*--run-dir"):
        latest_checkpoint(tmp_path, warnings.append)
    assert "manifest.json cannot be read" in warnings[0]


def test_manifests_of_another_format_or_that_lead_outside_are_refused(tmp_path):
    path = save_checkpoint(tmp_path, 3, tensors_of(3), {})
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"format": 2}))
    with pytest.raises(CheckpointError, match="format 2"):
        load_checkpoint(path)
    shutil.copy(path / "state.json", tmp_path / "state.json")
    manifest["files"]["../state.json"] = manifest["files"]["state.json"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path)


FILE_OPERATIONS = ("rename", "mkdir", "unlink", "rmdir", "fsync")


def crash_points(code):
    """Run `code` in children that die just before their first, second, ... change of the file system.

    Yields after each death, until one child comes to its end.
    """
    for survived in range(1000):

        def die_after(left=survived):
            def wrap(operation):
                def counted(*arguments, **options):
                    nonlocal left
                    if left == 0:
                        os._exit(7)
                    left -= 1
                    return operation(*arguments, **options)

                return counted

            for name in FILE_OPERATIONS:
                setattr(os, name, wrap(getattr(os, name)))
            code()

        status = exit_status(forked(die_after))
        assert status in (0, 7)
        yield survived
        if status == 0:
            return


@pytest.mark.parametrize(("existing", "step"), [([1], 1), ([1, 2], 3), ([], 1)])
def test_a_crash_before_any_operation_leaves_the_old_checkpoint_or_the_new(tmp_path, existing, step):
    def start_over():
        shutil.rmtree(tmp_path)
        for old in existing:
            save_checkpoint(tmp_path, old, tensors_of(old), {"take": "old"})

    start_over()
    outcomes = []
    for _ in crash_points(lambda: save_checkpoint(tmp_path, step, tensors_of(9), {"take": "new"})):
        found = latest_checkpoint(tmp_path, refuse_warning)
        for path in tmp_path.glob("step-*"):
            load_checkpoint(path)
        outcomes.append(found.state["take"] if found else "old")
        if found and found.state["take"] == "old":
            assert found.step == max(existing)
        save_checkpoint(tmp_path, step, tensors_of(9), {"take": "new"})
        assert not list(tmp_path.glob(".tmp-*"))
        assert not list(tmp_path.glob("*.old"))
        start_over()
    assert outcomes == sorted(outcomes, reverse=True)
    assert set(outcomes) == {"old", "new"}


def kill_while(save, root: Path, rounds: int) -> list[str]:
    """SIGKILL a child that saves in a loop, `rounds` times; what latest_checkpoint complained about."""
    moments, complaints = random.Random(0), []

    def save_forever():
        found = latest_checkpoint(root, lambda _: None)
        step = found.step if found else 0
        while True:
            step += step % 3 != 0 or random.random() < 0.5
            save(root, step, tensors_of(step), {"step": step})

    save(root, 0, tensors_of(0), {"step": 0})
    for _ in range(rounds):
        child = forked(save_forever)
        time.sleep(moments.uniform(0.005, 0.06))
        os.kill(child, signal.SIGKILL)
        assert exit_status(child) == -signal.SIGKILL
        try:
            found = latest_checkpoint(root, complaints.append)
        except CheckpointError as error:
            complaints.append(str(error))
            shutil.rmtree(root)
            save(root, 0, tensors_of(0), {"step": 0})
        else:
            assert found.state == {"step": found.step}
            assert torch.equal(found.tensors["model"]["w"], tensors_of(found.step)["model"]["w"])
    return complaints


def test_a_killed_process_always_leaves_a_valid_newest_checkpoint(tmp_path):
    assert kill_while(save_checkpoint, tmp_path / "shipped", 25) == []


def test_saving_in_place_would_not_survive_being_killed(tmp_path):
    def save_in_place(root, step, tensors, state):
        target = root / f"step-{step:09d}"
        target.mkdir(parents=True, exist_ok=True)
        for name, data in checkpoint_module._encode(step, tensors, state).items():
            checkpoint_module.write_synced(target / name, data)

    assert len(kill_while(save_in_place, tmp_path / "twin", 25)) > 5
