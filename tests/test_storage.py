"""The run directory, signals, provenance and durations."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from forking import exit_status, forked
from sabre.errors import InvalidArgumentError, RunDirectoryError
from sabre.storage import RunDirectory, StopSignal, parse_duration, provenance, source_commit
from sabre.storage.provenance import commit_of


def test_a_lock_is_held_across_processes_and_dies_with_its_holder(tmp_path):
    run = RunDirectory(tmp_path / "run")
    ready, tell = os.pipe()

    def hold():
        with run.lock():
            os.write(tell, b"!")
            time.sleep(60)

    child = forked(hold)
    os.read(ready, 1)
    with pytest.raises(RunDirectoryError, match=f"in use by process {child} .*choose another --run-dir"), run.lock():
        pass
    os.kill(child, signal.SIGKILL)
    exit_status(child)
    with run.lock(), pytest.raises(RunDirectoryError, match=f"process {os.getpid()}"), run.lock():
        pass
    with run.lock():
        pass


def test_config_round_trip_and_what_is_wrong_with_one(tmp_path):
    run = RunDirectory(tmp_path / "run")
    assert not run.exists()
    with pytest.raises(RunDirectoryError, match=r"no config\.yaml.*--run-dir"):
        run.read_config()
    config = {
        "target": {"name": "ising", "beta": 0.4407},
        "lr": 1e-5,
        "blocks": (2, 2),
        "net": None,
        "note": "β: x # y",
    }
    run.write_config(config)
    assert run.exists()
    assert run.read_config() == config | {"blocks": [2, 2]}
    with pytest.raises(InvalidArgumentError, match="plain YAML"):
        run.write_config({"x": object()})
    for broken, match in (
        ("a: [1", "not YAML"),
        ("just words", "no options"),
        ("a: !!python/object/apply:os.getcwd []", "not YAML"),
    ):
        run.config_path.write_text(broken)
        with pytest.raises(RunDirectoryError, match=match):
            run.read_config()


def test_metrics_survive_torn_lines_and_are_cut_back(tmp_path):
    run = RunDirectory(tmp_path / "run")
    assert run.read_metrics() == []
    for step in range(3):
        run.append_metrics({"step": step, "loss": 0.1 * step, "log_z": float("nan"), "more": [float("-inf")]})
    expected = [{"step": s, "loss": 0.1 * s, "log_z": None, "more": [None]} for s in range(3)]
    assert run.read_metrics() == expected
    whole = run.metrics_path.read_bytes()
    for cut in range(1, whole.rfind(b"\n", 0, -1), 7):
        run.metrics_path.write_bytes(whole[:-cut])
        torn = whole[:-cut].count(b"\n")
        assert run.read_metrics() == expected[:torn]
        run.append_metrics({"step": 9})
        assert run.read_metrics() == [*expected[:torn], {"step": 9}]
    run.metrics_path.write_bytes(whole)
    run.truncate_metrics(1)
    assert run.metrics_path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:2])
    run.metrics_path.write_text('{"step": 0}\nbroken\n{"step": 2}\n')
    with pytest.raises(RunDirectoryError, match=r"metrics\.jsonl, line 2"):
        run.read_metrics()


def test_results_are_strict_json_and_replaced_whole(tmp_path, monkeypatch):
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match=r"no results\.json"):
        run.read_results()
    run.write_results({"elbo": "old"})
    with run.results_path.open() as reader:
        run.write_results({"elbo": {"value": 1.5, "stderr": float("inf")}})
        assert json.load(reader) == {"elbo": "old"}
    assert run.read_results() == {"elbo": {"value": 1.5, "stderr": None}}
    run.write_report("<p>β</p>")
    assert run.report_path.read_text("utf-8") == "<p>β</p>"

    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunDirectoryError, match="No space left on device; free space"):
        run.write_results({"elbo": None})
    assert run.read_results()["elbo"] == {"value": 1.5, "stderr": None}
    assert sorted(p.name for p in run.path.iterdir()) == ["report.html", "results.json"]


def test_a_run_directory_that_cannot_be_made_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="choose another --run-dir"):
        RunDirectory(tmp_path / "file").append_metrics({})


@pytest.mark.parametrize(("first", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_is_noted_and_the_second_interrupt_is_immediate(first, code):
    def wait_for_signals():
        before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
        with StopSignal() as stop:
            assert stop.received is None
            os.kill(os.getpid(), first)
            assert stop.received == first
            assert 128 + stop.received == code
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.received == first
            os.kill(os.getpid(), signal.SIGINT)  # a double Ctrl-C is one
            stop._since -= 1.1
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before

    assert exit_status(forked(wait_for_signals)) == 0


def test_stop_signal_outside_the_main_thread_does_nothing():
    before, seen = signal.getsignal(signal.SIGINT), []

    def inside():
        with StopSignal() as stop:
            seen.append((stop.received, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [(None, before)]


def test_provenance_is_json_and_names_no_machine_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    command = ["/usr/local/bin/sabre", "train", f"--run-dir={tmp_path}/runs/a b", "/elsewhere/secret/x.py", "beta=1"]
    found = provenance(command)
    assert found["command"] == "sabre train '--run-dir=runs/a b' x.py beta=1"
    assert found["versions"]["torch"] == torch.__version__
    assert found["commit"] is None or len(found["commit"].removesuffix("-dirty")) == 40
    text = json.dumps(found, allow_nan=False)
    assert str(Path.home()) + "/" not in text
    assert str(tmp_path) not in text
    assert os.uname().nodename not in text
    monkeypatch.setenv("PATH", "")
    assert provenance([])["commit"] == found["commit"]  # asked once, before the source can change
    source_commit.cache_clear()
    assert provenance([])["commit"] is None
    source_commit.cache_clear()


def test_durations():
    assert [parse_duration(t) for t in ("600", "90s", "10m", "1.5h", " 2 D ")] == [600, 90, 600, 5400, 172800]
    for text in ("", "ten", "10x", "-5m", "0", "1m30", "nan", "inf", "1e3"):
        with pytest.raises(InvalidArgumentError, match="is not understood"):
            parse_duration(text)


def test_a_commit_is_dirty_when_the_package_has_changed_and_not_when_something_else_has(tmp_path):
    def git(*arguments):
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *name, *arguments], check=True, capture_output=True)

    package = tmp_path / "package"
    package.mkdir()
    file = package / "code.py"
    file.write_text("x = 1\n")
    git("init")
    assert commit_of(file, package) is None
    git("add", ".")
    git("commit", "--message", "first")
    clean = commit_of(file, package)
    assert clean is not None
    assert len(clean) == 40
    (tmp_path / "results.json").write_text("{}")
    assert commit_of(file, package) == clean
    file.write_text("x = 2\n")
    assert commit_of(file, package) == f"{clean}-dirty"


def test_a_copy_without_history_may_be_told_its_commit(monkeypatch):
    """The history itself comes first."""
    monkeypatch.setenv("SABRE_COMMIT", "told")
    for known, wanted in (("tracked", "tracked"), (None, "told")):
        source_commit.cache_clear()
        monkeypatch.setattr(sys.modules["sabre.storage.provenance"], "commit_of", lambda *_, known=known: known)
        assert provenance(["sabre"])["commit"] == wanted
    source_commit.cache_clear()
