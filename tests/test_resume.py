"""A run that was stopped, by a limit or by SIGKILL, ends as if it had never been: every bit of it."""

import contextlib
import itertools
import signal
import time
from types import SimpleNamespace

import pytest
import torch

import sabre
import sabre.training.loop as loop_module
from forking import spawned
from sabre.errors import CheckpointError
from sabre.storage import RunDirectory, latest_checkpoint
from sabre.targets import Ising
from small import PeakedTarget, UserNet

STEPS = 7
SMALL = {
    "steps": STEPS,
    "batch_size": 4,
    "width": 8,
    "depth": 1,
    "heads": 2,
    "buffer_size": 10,
    "prefill": 2,
    "mcmc_interval": 2,
    "mcmc_steps": 2,
    "eval_interval": 3,
    "eval_samples": 4,
    "final_samples": 0,
    "log_interval": 1,
    "checkpoint_interval": 5,
    "anneal": 0.5,
}
LEAPS = {"net": "equivariant", "jump_steps": 3, "eval_jump_steps": 3, "moments": 6, "mcmc_ratio": 0.5}
LEAPS |= {"kernel": "hamming"}
CASES = {
    "causal": {"method": "tb+replay+mcmc", "net": "causal"},
    "causal, random schedule": {"method": "tb+replay+mcmc", "order": "random", "block": "1", "schedule": "1-3"},
    "mlp": {"method": "lv+replay", "net": "mlp", "order": "checkerboard", "off_to_on": 0.5},
    "vit": {"method": "rkl", "net": "vit", "drop": 0.5, "weight_decay": 0.01},
    "mdns": {"method": "wdce", "net": "mlp", "ema": 0.9, "reuse": 3, "replicates": 2, "warm_up": 0.3},
    "reused": {"method": "tb", "net": "causal", "order": "random", "reuse": 3},
    "leaps": {"method": "leaps+replay+mcmc"} | LEAPS,
    "user": {"method": "lv+replay+mcmc", "drop": 0.4, "schedule": "1-2", "priority": "density"},
}


class AveragingNet(UserNet):
    """A user's network with a buffer that training changes: the running mean of its features."""

    def __init__(self, seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            super().__init__(16, 2)
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, state):
        features = self.table(state)
        self.mean.lerp_(features.detach().mean((0, 1)), 0.1)
        return self.out((features - self.mean).flatten(1)).unflatten(1, self.shape)


class StopAfter:
    """Takes the place of the deadline: over after that many steps instead of seconds."""

    def __init__(self, steps):
        self.left = STEPS + 1 if steps is None else steps

    def has_passed(self):
        self.left -= 1
        return self.left < 0


def net_of(case, seed):
    return AveragingNet(seed) if case == "user" else None


def start(case, path, steps: float | None = None):
    options = sabre.Options().replace(SMALL | CASES[case])
    target = Ising(4, 0.6, field=0.2)
    return sabre.train(target, net=net_of(case, 0), options=options, run_dir=path, time_limit=steps, progress=False)


def go_on(case, path, **options):
    """Resume; a network of the user's comes with other weights, which must not matter."""
    return sabre.resume(path, net=net_of(case, 1), progress=False, **options)


def end_of(path):
    """What must not depend on interruptions: tensors, and the other values of a run but for its wall clock."""
    directory = RunDirectory(path)
    final = latest_checkpoint(directory.checkpoints, pytest.fail)
    tensors = {f"{group}/{name}": t for group, named in final.tensors.items() for name, t in named.items()}
    values = {name: value for name, value in final.state.items() if name not in ("seconds", "sessions")}
    return tensors, {"step": final.step, "metrics": directory.metrics_path.read_bytes()} | values


def differences(path, other):
    """Names of what is not the same to the last bit."""
    (tensors, values), (tensors_2, values_2) = end_of(path), end_of(other)
    assert tensors.keys() == tensors_2.keys()
    assert values.keys() == values_2.keys() >= {"step", "metrics", "num_evaluations"}
    found = [name for name, t in tensors.items() if t.dtype != tensors_2[name].dtype or not t.equal(tensors_2[name])]
    return found + [name for name, value in values.items() if value != values_2[name]]


@pytest.mark.parametrize("case", CASES)
def test_stopped_after_any_step_and_resumed_a_run_ends_bit_for_bit_the_same(case, tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    straight = start(case, tmp_path / "straight")
    assert straight.finished
    for stop in (0.0, 1.0, 4.0, 6.0):
        path = tmp_path / str(stop)
        assert start(case, path, steps=stop).step == stop
        resumed = go_on(case, path)
        assert resumed.finished
        assert differences(tmp_path / "straight", path) == []
        assert resumed.records == straight.records
    assert go_on(case, tmp_path / "4.0").records == straight.records
    assert differences(tmp_path / "straight", tmp_path / "4.0") == []


def test_what_is_compared_holds_every_part_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    start("user", tmp_path / "user")
    tensors, _ = end_of(tmp_path / "user")
    groups = {name.split("/")[0] for name in tensors}
    assert groups == {"model", "optimiser", "replay", "mcmc", "noise"}
    assert {name for name in tensors if name.startswith("noise/")} == {
        f"noise/{name}" for name in ("rollout", "path", "replay", "mcmc", "drop")
    }
    assert "model/module.network.mean" in tensors
    assert tensors["model/log_z"].dtype == torch.float64


@pytest.mark.parametrize(
    ("case", "group", "name"),
    [
        ("causal", "noise", "replay"),
        ("causal", "optimiser", "0.exp_avg"),
        ("causal", "replay", "priority"),
        ("causal", "mcmc", "added"),
        ("causal", "model", "log_z"),
        ("mdns", "averages", "module.first.weight"),
        ("mdns", "averages", "num_updates"),
        ("mdns", "kept", "tokens"),
        ("reused", "kept", "order"),
        ("mdns", "kept", "log_pf"),
        ("mdns", "kept", "uses"),
        ("leaps", "replay", "times"),
        ("leaps", "mcmc", "times"),
        ("leaps", "ends", "x"),
        ("leaps", "noise", "path"),
    ],
)
def test_a_resume_that_forgets_one_part_is_noticed(case, group, name, tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    start(case, tmp_path / "straight")
    start(case, tmp_path / "stopped", steps=4.0)
    shipped = sabre.run.latest_checkpoint

    def forgetful(root, warn, *, set_aside):
        found = shipped(root, warn)
        tensor = found.tensors[group][name]
        fresh = sabre.noise.Noise(9).state if group == "noise" else torch.zeros_like(tensor)
        return type(found)(found.step, found.tensors | {group: found.tensors[group] | {name: fresh}}, found.state)

    monkeypatch.setattr(sabre.run, "latest_checkpoint", forgetful)
    go_on(case, tmp_path / "stopped")
    assert differences(tmp_path / "straight", tmp_path / "stopped") != []


def test_a_run_without_its_first_checkpoint_starts_again_from_the_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    start("causal", tmp_path / "straight")

    def die(*_):
        raise CheckpointError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(loop_module, "save_checkpoint", die)
        with pytest.raises(CheckpointError, match="the disk is gone"):
            start("causal", tmp_path / "lost")
    assert RunDirectory(tmp_path / "lost").read_metrics()
    go_on("causal", tmp_path / "lost")
    assert differences(tmp_path / "straight", tmp_path / "lost") == []


def test_a_damaged_checkpoint_does_not_take_the_place_of_a_good_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    checkpoints = RunDirectory(tmp_path / "run").checkpoints
    start("causal", tmp_path / "run", steps=3.0)
    go_on("causal", tmp_path / "run", time_limit=1.0)
    assert step_names(checkpoints) == ["step-000000003", "step-000000004"]
    flip_a_bit(checkpoints / "step-000000004" / "model.safetensors")
    sabre.load(tmp_path / "run")
    assert step_names(checkpoints) == ["step-000000003", "step-000000004"]
    go_on("causal", tmp_path / "run", time_limit=2.0)
    assert "step-000000004/model.safetensors is damaged" in capsys.readouterr().err
    assert step_names(checkpoints) == ["step-000000003", "step-000000005"]
    flip_a_bit(checkpoints / "step-000000005" / "model.safetensors")
    assert latest_checkpoint(checkpoints, lambda _: None).step == 3


def step_names(checkpoints):
    return sorted(path.name for path in checkpoints.glob("step-*"))


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_a_checkpoint_of_other_options_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    start("causal", tmp_path / "run", steps=3.0)
    directory = RunDirectory(tmp_path / "run")
    config = directory.read_config()
    directory.write_config(config | {"options": config["options"] | {"width": 16}})
    with pytest.raises(CheckpointError, match=r"step 3 does not fit.*config\.yaml"):
        go_on("causal", tmp_path / "run")


def test_resuming_counts_the_wall_clock_of_both_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    monkeypatch.setattr(loop_module, "time", SimpleNamespace(monotonic=itertools.count(0.0).__next__))
    start("causal", tmp_path / "run", steps=3.0)
    go_on("causal", tmp_path / "run")
    final = latest_checkpoint(RunDirectory(tmp_path / "run").checkpoints, pytest.fail)
    assert final.state["seconds"] == STEPS


KILLED = sabre.Options().replace(SMALL | {"steps": 60, "checkpoint_interval": 3, "eval_interval": 20})


def train_or_go_on(path):
    target = PeakedTarget(8, 2)
    with contextlib.suppress(sabre.SabreError):
        sabre.train(target, options=KILLED, run_dir=path, progress=False)
        return
    sabre.resume(path, target=target, progress=False)


def test_killed_three_times_a_run_ends_bit_for_bit_the_same(tmp_path):
    train_or_go_on(tmp_path / "straight")
    directory = RunDirectory(tmp_path / "killed")
    for _ in range(3):
        before = newest_step(directory)
        child = spawned(train_or_go_on, tmp_path / "killed")
        while newest_step(directory) == before:
            assert child.is_alive(), "the run ended before it could be killed"
            time.sleep(0.001)
        child.kill()
        child.join()
        assert child.exitcode == -signal.SIGKILL
    assert latest_checkpoint(directory.checkpoints, pytest.fail).step < KILLED.steps
    train_or_go_on(tmp_path / "killed")
    assert differences(tmp_path / "straight", tmp_path / "killed") == []


def newest_step(directory):
    return max((path.name for path in directory.checkpoints.glob("step-*")), default=None)


def test_provenance_is_that_of_the_training_and_tells_who_had_a_part_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "_Deadline", StopAfter)
    monkeypatch.setattr("sys.argv", ["sabre", "train", "first"])
    start("mlp", tmp_path / "run", steps=3.0)
    monkeypatch.setattr("sys.argv", ["sabre", "train", "second"])
    go_on("mlp", tmp_path / "run")
    monkeypatch.setattr("sys.argv", ["sabre", "evaluate"])
    run = sabre.load(tmp_path / "run")
    run.evaluate(16, seed=7)
    found = run.results["provenance"]
    assert (found["command"], found["from_step"]) == ("sabre train second", 3)
    assert [(part["command"], part["from_step"]) for part in found["resumed_from"]] == [("sabre train first", 0)]
    assert found["num_evaluations"] == run.num_evaluations > 0
    assert (run.results["evaluated"]["command"], run.results["evaluated"]["seed"]) == ("sabre evaluate", 7)
