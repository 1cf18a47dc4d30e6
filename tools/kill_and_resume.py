"""Kill training with SIGKILL at random moments, fill its disk, damage its checkpoints: the end must be the same.

    python tools/kill_and_resume.py [number of kills, 20 by default]

One run is left alone. Every other run is killed once, most of them anywhere, every fourth in the middle of a save, and
resumed to its end; weights, optimiser, buffers, random streams, metrics and results must then be those of the first
run, bit for bit. Exit code 0 if all are, else 1.
"""

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo

import sabre
from sabre.storage import Checkpoint, RunDirectory, latest_checkpoint
from sabre.targets import Ising

TARGET = Ising(4, 0.6, field=0.2)
OPTIONS = sabre.Options(
    steps=120,
    width=16,
    depth=1,
    heads=2,
    batch_size=64,
    buffer_size=400,
    prefill=2,
    mcmc_interval=10,
    mcmc_steps=5,
    schedule="1-2",
    drop=0.3,
    eval_interval=25,
    eval_samples=32,
    final_samples=64,
    log_interval=1,
    checkpoint_interval=12,
)


def train(path: Path) -> None:
    """Start the run, or go on with it if it has been started."""
    if RunDirectory(path).exists():
        sabre.resume(path, progress=False)
    else:
        sabre.train(TARGET, options=OPTIONS, run_dir=path, progress=False)


def spawn(code: Callable[[], object], output: Path) -> int:
    """Run code in a child process, its messages in a file; the id of the child."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 2)
        code()
        status = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    os._exit(status)


def finish(code: Callable[[], object], output: Path) -> int:
    """Run code in a child process to its end; its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(spawn(code, output), 0)[1])


def newest(path: Path) -> Checkpoint | None:
    """The newest checkpoint, which must not be a damaged one."""

    def refuse(message: str) -> None:
        raise AssertionError(message)

    return latest_checkpoint(RunDirectory(path).checkpoints, refuse)


def end_of(path: Path) -> dict[str, Any]:
    """All that a run leaves, but for its wall clock and provenance."""
    directory, final = RunDirectory(path), newest(path)
    assert final is not None
    found: dict[str, Any] = {
        f"{group}/{name}": t for group, named in final.tensors.items() for name, t in named.items()
    }
    results = {key: value for key, value in directory.read_results().items() if key not in ("provenance", "evaluated")}
    values = {name: value for name, value in final.state.items() if name not in ("seconds", "sessions")}
    return found | values | {"step": final.step, "results": results, "metrics": directory.metrics_path.read_bytes()}


def differences(path: Path, expected: dict[str, Any]) -> list[str]:
    """The names of what is not as in the run that was left alone."""
    found = end_of(path)
    assert found.keys() == expected.keys()
    return [name for name, value in found.items() if not _same(value, expected[name])]


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype == other.dtype and value.shape == other.shape and torch.equal(value, other)
    return bool(value == other)


def saves_now(path: Path) -> bool:
    """Whether a checkpoint is half written."""
    return any(RunDirectory(path).checkpoints.glob(".tmp-*"))


def kill_once(path: Path, moment: float, in_a_save: bool) -> bool:
    """Start the run, kill it `moment` seconds later, or in the first save after that; False if it was faster."""
    child, began = spawn(lambda: train(path), path.with_suffix(".log")), time.monotonic()
    while time.monotonic() - began < moment or (in_a_save and not saves_now(path)):
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(1e-4)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def where_killed(path: Path) -> str:
    """What the run was doing, as far as it has left traces."""
    records, checkpoint = RunDirectory(path).read_metrics(), newest(path)
    made = max((record["step"] for record in records), default=0)
    kept = f"newest checkpoint {checkpoint.step:>3}" if checkpoint else "no checkpoint yet    "
    return f"at step {made:>3}, {kept}, {'inside a save ' if saves_now(path) else 'in between    '}"


def killed_run(path: Path, duration: float, moments: random.Random, in_a_save: bool) -> float:
    """A run that was killed before its end; the moment when."""
    while True:
        moment = duration * moments.uniform(0.2 if in_a_save else 0.0, 0.95)
        if kill_once(path, moment, in_a_save):
            return moment
        shutil.rmtree(path)


def half_way(path: Path, duration: float, moments: random.Random) -> None:
    """A run that was killed with two checkpoints behind it and more to save before it."""
    while True:
        killed_run(path, duration, moments, in_a_save=False)
        checkpoint = newest(path)
        if (
            checkpoint
            and checkpoint.step < OPTIONS.steps
            and len(list(RunDirectory(path).checkpoints.glob("step-*"))) > 1
        ):
            return
        shutil.rmtree(path)


def verdict(path: Path, expected: dict[str, Any]) -> str:
    """Resume to the end and compare."""
    log = path.with_suffix(".log")
    if finish(lambda: train(path), log):
        return f"FAILED to resume: {log.read_text(errors='replace').strip()}"
    different = differences(path, expected)
    return f"DIFFERENT: {', '.join(different[:5])}" if different else "bit-equal"


def full_disk(path: Path, expected: dict[str, Any]) -> str:
    """Resume where no file may grow to the size of a checkpoint, then resume again where it may."""
    before, log = newest(path), path.with_suffix(".log")
    assert before is not None
    largest = max(file.stat().st_size for file in RunDirectory(path).checkpoints.glob("step-*/*"))

    def train_on_a_full_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest - 1, largest - 1))
        train(path)

    status, message = finish(train_on_a_full_disk, log), log.read_text(errors="replace")
    after = newest(path)
    if status == 0 or "CheckpointError: cannot save a checkpoint" not in message:
        return f"FAILED: the full disk was not reported ({message.strip()})"
    if after is None or after.step != before.step or saves_now(path):
        return "FAILED: the old checkpoint is not what it was"
    return verdict(path, expected)


def flipped_bits(path: Path, expected: dict[str, Any], moments: random.Random) -> str:
    """Flip one bit in each file of the newest checkpoint, in a copy of the run for each of them, and resume."""
    newest_one = sorted(RunDirectory(path).checkpoints.glob("step-*"))[-1]
    for name in sorted(file.name for file in newest_one.iterdir()):
        copy = path.with_name(f"{path.name}-{name}")
        shutil.copytree(path, copy)
        file = copy / newest_one.relative_to(path) / name
        data = bytearray(file.read_bytes())
        data[moments.randrange(len(data))] ^= 1 << moments.randrange(8)
        file.write_bytes(data)
        result = verdict(copy, expected)
        warning = copy.with_suffix(".log").read_text(errors="replace")
        # A wrong entry of the manifest names the file that it is about.
        named = f"{file.parent}" if name == "manifest.json" else f"{file} is damaged"
        if result != "bit-equal" or named not in warning:
            return f"FAILED: {name}: {result}, and the warning was {warning.strip()!r}"
    return "bit-equal"


def main(num_kills: int) -> int:
    """1. A run that is left alone. 2. The kills. 3. A full disk. 4. A flipped bit."""
    torch.set_num_threads(1)
    moments = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="sabre-kills-") as name:
        root = Path(name)
        began = time.monotonic()
        assert finish(lambda: train(root / "alone"), root / "alone.log") == 0, (root / "alone.log").read_text()
        duration, expected = time.monotonic() - began, end_of(root / "alone")
        print(f"left alone: {OPTIONS.steps} steps in {duration:.2f} s, {len(expected)} things to compare", flush=True)
        equal = 0
        for number in range(num_kills):
            path = root / f"run-{number}"
            moment = killed_run(path, duration, moments, in_a_save=number % 4 == 3)
            where = where_killed(path)
            result = verdict(path, expected)
            equal += result == "bit-equal"
            print(f"kill {number + 1:>2}: after {moment:5.2f} s, {where} -> {result}", flush=True)
        for path in (root / "full", root / "flipped"):
            half_way(path, duration, moments)
        others = [full_disk(root / "full", expected), flipped_bits(root / "flipped", expected, moments)]
    print(f"disk full during a save -> {others[0]}")
    print(f"a flipped bit in any file of the newest checkpoint -> {others[1]}")
    print(f"{equal} of {num_kills} bit-equal")
    return int(equal < num_kills or others != ["bit-equal"] * 2)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
