"""The command line: every line of the manual in small, what is printed where, and how a run is stopped."""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sabre
from sabre.cli.flags import GROUPS
from sabre.cli.kinds import kind_of
from sabre.cli.main import COMMANDS, main
from sabre.evaluation import scores_text
from sabre.options import METHODS, NETS
from sabre.presets import PRESETS
from sabre.storage import RunDirectory
from sabre.targets import TARGETS

NETWORK = "--width 8 --depth 1 --heads 1"
TINY = f"--steps 6 --batch-size 8 --prefill 1 --eval-interval 0 --final-samples 32 --log-interval 1 {NETWORK}"
ISING = f"train ising --size 4 --beta 0.4407 {TINY}"


def sabre_line(line: str) -> int:
    return main(line.split())


def strict(text: str) -> dict:
    """The one JSON object that a text consists of."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def configured(directory: str | Path) -> dict:
    return RunDirectory(directory).read_config()["options"]


@pytest.fixture(autouse=True)
def _inside_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "ising"
    assert sabre_line(f"{ISING} --method tb+replay+mcmc --net causal --seed 0 --quiet --run-dir {path}") == 0
    return path


@pytest.fixture
def run_dir(trained):
    shutil.copytree(trained, "runs/ising")
    return Path("runs/ising")


def test_list_names_everything(capsys):
    assert sabre_line("list") == 0
    out = capsys.readouterr().out
    for name in [*TARGETS, *METHODS, *NETS, *PRESETS, "swendsen-wang", "checkerboard", "--num-categories N"]:
        assert name in out
    assert re.search(r"ising +--size N --beta X \[--coupling 1.0\] \[--field 0.0\]", out)
    assert "[--rotated true]" in out
    assert max(map(len, out.splitlines())) <= 112


def test_train_shows_the_truth_beside_the_estimates(capsys):
    assert sabre_line(f"{ISING} --method tb+replay+mcmc --net causal --seed 0 --run-dir runs/ising") == 0
    out, err = capsys.readouterr()
    assert "exact log Z 15.52225" in out
    assert "report      runs/ising/report.html" in out
    assert "step 6/6" in err
    assert Path("runs/ising/report.html").stat().st_size > 1000
    assert configured("runs/ising")["steps"] == 6


def test_quiet_shows_no_progress(capsys):
    assert sabre_line(f"{ISING} --quiet --run-dir r") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "exact log Z" in out


def test_a_run_gets_a_directory_of_its_own(capsys):
    for expected in ("runs/ising-lv-seed3", "runs/ising-lv-seed3-2", "runs/ising-lv-seed3-3"):
        assert sabre_line(f"{ISING} --method lv --seed 3 --quiet --final-samples 0") == 0
        assert f"run directory: {expected}\n" in capsys.readouterr().out
        assert RunDirectory(expected).exists()


def test_a_stopped_run_goes_on_to_the_same_end(capsys):
    assert sabre_line(f"{ISING} --quiet --run-dir whole") == 0
    assert sabre_line(f"{ISING} --quiet --run-dir parts --time-limit 0.000001s") == 0
    out = capsys.readouterr().out
    assert out.endswith("go on with: sabre train parts --resume\n")
    assert [path.name for path in Path("parts/checkpoints").iterdir()] == ["step-000000000"]
    assert sabre_line("train parts --resume --quiet") == 0
    assert Path("parts/metrics.jsonl").read_bytes() == Path("whole/metrics.jsonl").read_bytes()
    weights = "checkpoints/step-000000006/model.safetensors"
    assert Path("parts", weights).read_bytes() == Path("whole", weights).read_bytes()


def test_a_users_function_is_found_in_the_current_directory(capsys):
    Path("cli_module.py").write_text(
        "def log_density(x):\n    print('loud')\n    return (x[:, 0] > 0).double().log() - x.sum(1).double()\n"
    )
    line = f"{TINY} --quiet --run-dir r --dim 10 --num-categories 3"
    assert sabre_line(f"train cli_module:log_density {line}") == 0
    assert RunDirectory("r").read_config()["target"] == {
        "name": "cli_module:log_density",
        "dim": 10,
        "num_categories": 3,
    }
    capsys.readouterr()
    assert sabre_line("evaluate r --samples 64 --json") == 0
    out, err = capsys.readouterr()
    result = strict(out)
    assert result["elbo"] == {"value": None, "stderr": None}
    assert result["log_z"]["value"] == pytest.approx(result["log_z_exact"], abs=4)
    assert "loud" in err
    assert sabre_line("exact cli_module:log_density --dim 2 --num-categories 2 --json") == 0
    known = strict(capsys.readouterr().out)
    assert known["source"] == "enumeration"
    assert known["log_z_exact"] == pytest.approx(np.log(np.exp(-1) + np.exp(-2)))


def test_a_preset_is_overridden_by_what_is_given():
    line = f"train --preset paper/gmm40-d16 --method tb --quiet --time-limit 0.000001s {NETWORK} --batch_size 8"
    assert sabre_line(f"{line} --prefill 1") == 0
    config = RunDirectory("runs/gmm40-tb-seed0").read_config()
    assert config["target"]["dim"] == 2
    given = {"method": "tb", "batch_size": 8, "prefill": 1, "width": 8, "depth": 1, "heads": 1}
    expected = PRESETS["paper/gmm40-d16"]().options.replace(given).as_dict()
    assert config["options"] == expected
    assert expected["steps"] == 20_000


def test_a_config_file_stands_behind_the_command_line():
    Path("c.yaml").write_text(
        "target: ising\nsize: 4\nbeta: 0.3\nbatch-size: 8\nsteps: 50\ninformed: false\nwidth: 8\n"
    )
    line = "--config c.yaml --prefill 1 --quiet --time-limit 0.000001s --run-dir r --heads 1"
    assert sabre_line(f"train --steps 40 --beta 0.2 {line}") == 0
    config = RunDirectory("r").read_config()
    assert config["target"] == {"name": "ising", "size": 4, "beta": 0.2, "coupling": 1.0, "field": 0.0}
    shown = {key: config["options"][key] for key in ("batch_size", "steps", "informed", "width")}
    assert shown == {"batch_size": 8, "steps": 40, "informed": False, "width": 8}


@pytest.mark.parametrize(
    ("words", "target", "option"),
    [
        ("ising --size=2 --beta -0.5 --no-informed", {"beta": -0.5}, {"informed": False}),
        ("--informed ising --size 2 --beta 1", {"beta": 1.0}, {"informed": True}),
        ("ising --size 2 --beta 1 --informed false", {}, {"informed": False}),
        ("--no-rotated manywell --dim 2 --bits 2", {"rotated": False}, {}),
        ("potts --size 2 --q 3 --beta 1 --field 0.5,0,-1", {"field": [0.5, 0.0, -1.0]}, {}),
        ("potts --size 2 --q 3 --beta 1 --field none --width none", {"field": None}, {"width": None}),
        ("gmm40 --dim 1 --target-seed 5 --seed 7 --bits 2", {"seed": 5}, {"seed": 7}),
        ("ising --size 2 --beta 1 --log-z-init -2 --block 1", {}, {"log_z_init": -2.0, "block": "1"}),
    ],
)
def test_values_arrive_as_they_were_written(words, target, option):
    tiny = "--heads 1 --batch-size 4 --prefill 1 --quiet --time-limit 0.000001s --run-dir r"
    assert sabre_line(f"train {tiny} {words}") == 0
    config = RunDirectory("r").read_config()
    assert {key: config["target"][key] for key in target} == target
    assert {key: config["options"][key] for key in option} == option


def test_every_option_and_target_argument_is_a_flag(capsys):
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted(field.name for field in dataclasses.fields(sabre.Options))
    for target in TARGETS:
        assert sabre_line(f"train {target} --help") == 0
        out = capsys.readouterr().out
        assert all(f"--{name.replace('_', '-')} " in out for name in names)
        assert "(default: 3000)" in out
        for group in ("target:", "method:", "network:", "experience:", "run:"):
            assert f"\n{group}\n" in out
    assert sabre_line("train --preset paper/gmm40-d16 --help") == 0
    assert "(default: 20000)" in capsys.readouterr().out
    with pytest.raises(KeyError):
        kind_of(complex)


def test_evaluate_prints_one_json_object_or_a_table(run_dir, capsys):
    assert sabre_line(f"evaluate {run_dir} --samples 128 --json") == 0
    result = strict(capsys.readouterr().out)
    for key in ("elbo", "eubo", "log_z", "ess"):
        assert set(result[key]) == {"value", "stderr"}
    assert result["log_z_exact"] == pytest.approx(15.52225, abs=1e-4)
    assert result["num_samples"] == 128
    assert strict((run_dir / "results.json").read_text()) == result
    assert sabre_line(f"evaluate {run_dir} -n 128") == 0
    out = capsys.readouterr().out
    assert out == scores_text(result) + "\n"
    assert f"{result['elbo']['value']:.5g} ± {result['elbo']['stderr']:.2g}" in out


def test_sample_writes_states_with_their_weights(run_dir, capsys):
    assert sabre_line(f"sample {run_dir} -n 50 --out samples.npz --seed 4") == 0
    assert "50 samples" in capsys.readouterr().out
    with np.load("samples.npz") as file:
        x, log_weight = file["x"], file["log_weight"]
    assert (x.shape, x.dtype, log_weight.shape) == ((50, 16), np.uint8, (50,))
    again, weights = sabre.load(run_dir).sample_with_log_weights(50, 4)
    assert np.array_equal(again.numpy(), x)
    assert np.array_equal(weights.numpy(), log_weight)


@pytest.mark.parametrize(
    ("arguments", "log_z", "source"),
    [
        ("ising --size 16 --beta 0.4407", 238.647169, "closed form"),
        ("potts --size 2 --q 2 --beta 0", 4 * np.log(2), "closed form"),
        ("ising --size 64 --beta 0.4 --field 0.5", None, "unknown"),
    ],
)
def test_exact_says_what_is_known(arguments, log_z, source, capsys):
    assert sabre_line(f"exact {arguments} --json") == 0
    result = strict(capsys.readouterr().out)
    assert result["source"] == source
    assert result["log_z_exact"] == (None if log_z is None else pytest.approx(log_z, abs=1e-5))
    assert sabre_line(f"exact {arguments}") == 0
    shown = {"exact log Z": "unknown" if log_z is None else f"{result['log_z_exact']:.10g}", "source": source}
    energies = {name: result[name.replace(" ", "_")] for name in ("mean energy", "heat capacity")}
    shown |= {name: f"{value:.10g}" for name, value in energies.items() if value is not None}
    found = [re.sub(r" {2,}", " ", line) for line in capsys.readouterr().out.splitlines()]
    assert found == [f"{name} {value}" for name, value in shown.items()]
    assert (result["mean_energy"] is None) == (source == "unknown")


def test_report_says_where_it_is(run_dir, capsys):
    (run_dir / "report.html").unlink()
    assert sabre_line(f"report {run_dir}") == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == run_dir / "report.html"
    assert "</html>" in path.read_text()


def test_help_and_version(capsys):
    for words in ([], ["--help"]):
        assert main(words) == 0
        out = capsys.readouterr().out
        assert all(f"  {name} " in out for name in COMMANDS)
    assert main(["--version"]) == 0
    assert re.fullmatch(r"sabre \d+\.\d+\S*\n", capsys.readouterr().out)
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: sabre {name}")


def _start(*words: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "sabre", *words]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    environment["OMP_NUM_THREADS"] = "1"
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_that_can_go_on(number, code, capsys):
    line = f"{ISING} --run-dir r".replace("--steps 6", "--steps 100000")
    process = _start(*line.split())
    try:
        deadline = time.monotonic() + 60
        while not Path("r/metrics.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert "Traceback" not in err
    step = max(int(path.name[5:]) for path in Path("r/checkpoints").iterdir())
    assert step >= 1
    assert sabre_line("train r --resume --quiet --time-limit 0.2s") == 0
    capsys.readouterr()
    assert max(int(path.name[5:]) for path in Path("r/checkpoints").iterdir()) > step


@pytest.mark.parametrize("line", ["list", "train ising --help"])
def test_a_reader_that_leaves_early_is_no_error(line):
    process = _start(*line.split())
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()
