"""Mistakes of users on the command line: each gets a short message with cause and remedy, and nothing is damaged."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

import sabre
from forking import forked
from sabre.cli.main import main
from sabre.errors import InvalidArgumentError
from sabre.storage import RunDirectory
from sabre.targets import Ising

NETWORK = "--width 8 --depth 1 --heads 1"
TINY = f"--steps 4 --batch-size 8 --prefill 1 --eval-interval 0 --final-samples 16 --quiet {NETWORK}"
ISING = f"train ising --size 2 --beta 0.5 {TINY}"


@pytest.fixture(autouse=True)
def _inside_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])


@pytest.fixture
def refused(capsys):
    """Runs a line that must be refused; the message."""

    def run(line: str, *key_words: str) -> str:
        capsys.readouterr()
        assert main(line.split()) == 2
        out, err = capsys.readouterr()
        assert err.splitlines()[0].startswith(("error: ", "warning: "))
        assert "error: " in err
        assert len(err.splitlines()) <= 6
        assert "Traceback" not in err
        assert out == "" or out.startswith("run directory: ")
        for word in key_words:
            assert word in err, err
        return err

    return run


def contents(directory: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(directory).rglob("*") if path.is_file()}


FAULTY = {
    "nan": ("return x.sum(1).double() * float('nan')", ("returned NaN", "first row 0", "return -inf for a forbidden")),
    "infinite": ("return x.sum(1).double() + float('inf')", ("+inf", "no state may have infinite density")),
    "forbidden": ("return x.sum(1).double() - float('inf')", ("-inf on all", "finite penalty")),
    "shape": ("return x.double()", ("shape (8, 4) instead of (8,)", ".sum(-1)")),
    "column": ("return x.sum(1, keepdim=True).double()", ("shape (8, 1)", ".squeeze(-1)")),
    "dtype": ("return x.sum(1)", ("torch.int64", ".double()")),
    "half": ("return x.sum(1).half()", ("torch.float16", "float32 or float64")),
    "exit": ("raise SystemExit(3)", ("raised SystemExit: 3", "call it by hand")),
    "exception": ("raise KeyError('lost table')", ("raised KeyError: 'lost table'", "call it by hand")),
    "long_exception": ("raise ValueError('many\\n' * 40)", ("raised ValueError: many", "...")),
    "in_place": ("x[:, 0] = 1; return x.sum(1).double()", ("changed its argument in place", "clone x")),
    "no_tensor": ("return 3.0", ("value of type float", "torch.Tensor")),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_faulty_density_is_explained_and_its_directory_can_be_used_again(case, refused, monkeypatch, capsys):
    body, key_words = FAULTY[case]
    module = f"faulty_{case}"
    line = f"train {module}:f --dim 4 --num-categories 2 {TINY} --run-dir r"
    Path(f"{module}.py").write_text(f"def f(x):\n    {body}\n")
    refused(line, *key_words)
    refused("evaluate r", "no checkpoint yet", "train it again")
    Path(f"{module}.py").write_text("def f(x):\n    # corrected\n    return -x.sum(1).double()\n")
    monkeypatch.delitem(sys.modules, module)
    assert main(line.split()) == 0
    assert "exact log Z" in capsys.readouterr().out


def test_exact_explains_a_faulty_density(refused):
    Path("nothing_allowed.py").write_text("def f(x):\n    return x.sum(1).double() - float('inf')\n")
    refused("exact nothing_allowed:f --dim 3 --num-categories 2 --json", "-inf on all states", "allow some")


def test_a_density_that_fails_later_loses_nothing_that_was_saved(refused, monkeypatch):
    Path("late.py").write_text(
        textwrap.dedent(
            """
            calls = 0
            def f(x):
                global calls
                calls += 1
                return -x.sum(1).double() if calls < 5 else (1 + x.sum(1)) / 0.0
            """
        )
    )
    line = f"train late:f --dim 4 --num-categories 2 {TINY} --method tb --checkpoint-interval 1 --log-interval 1"
    refused(f"{line} --run-dir r", "+inf", "wrong sign")
    saved = [path.name for path in Path("r/checkpoints").iterdir()]
    assert saved
    Path("late.py").write_text("def f(x):\n    return -x.sum(1).double()\n")
    monkeypatch.delitem(sys.modules, "late")
    refused(f"{line} --run-dir r", "holds a run already", "--resume")
    assert main(["train", "r", "--resume", "--quiet"]) == 0
    assert [record["step"] for record in RunDirectory("r").read_metrics()] == [1, 2, 3, 4]


def test_a_failed_start_leaves_its_default_directory_to_the_next(refused, monkeypatch, capsys):
    line = f"train start:f --dim 4 --num-categories 2 {TINY} --method tb --log-interval 1"
    Path("start.py").write_text(
        "calls = 0\ndef f(x):\n    global calls\n    calls += 1\n    return calls / (calls < 5) - x.sum(1).double()\n"
    )
    refused(line, "ZeroDivisionError")
    Path("start.py").write_text("def f(x):\n    return -x.sum(1).double()\n")
    monkeypatch.delitem(sys.modules, "start")
    assert RunDirectory("runs/f-tb-seed0").read_metrics()
    assert main(line.split()) == 0
    assert "run directory: runs/f-tb-seed0\n" in capsys.readouterr().out
    assert [record["step"] for record in RunDirectory("runs/f-tb-seed0").read_metrics()] == [1, 2, 3, 4]


LINES = [
    ("trian ising", ("unknown command 'trian'", "'train'")),
    ("train", ("no target is named", "ising", "--preset")),
    (f"{ISING} --method tb+replya", ("unknown method 'tb+replya'", "'tb+replay'")),
    (f"{ISING} --net custom", ("unknown net 'custom'", "causal")),
    (f"{ISING} --bacth-size 3", ("unknown option --bacth-size; did you mean --batch-size?",)),
    (f"{ISING} --batch 3", ("unknown option --batch; did you mean",)),
    (f"{ISING} --zzz 3", ("unknown option --zzz; --help lists the options",)),
    (f"{ISING} --steps -5", ("steps is -5", "at least 1")),
    (f"{ISING} --steps 3.5", ("--steps is '3.5'; give a whole number",)),
    (f"{ISING} --learning-rate fast", ("--learning-rate is 'fast'; give a number",)),
    (f"{ISING} --informed=maybe", ("--informed is 'maybe'; give true or false",)),
    (f"{ISING} --no-quiet=true", ("--no-quiet takes no value",)),
    (f"{ISING} --heads 3", ("width 8 does not split into 3 heads", "multiple of 6")),
    (f"{ISING} --kernel gibs", ("unknown kernel 'gibs'", "'gibbs'")),
    (f"{ISING} --method tb --kernel gibs", ("unknown kernel 'gibs'", "'gibbs'")),
    (f"{ISING} --method tb --priority wieght", ("unknown priority 'wieght'", "'weight'")),
    (f"{ISING} --kernel hamming --hamming-radius 2", ("hamming_radius is 2", "choose an odd radius")),
    ("train gmm40 --dim 1 --kernel swendsen-wang", ("'gmm40' has none", "use 'gibbs'")),
    ("train ising --size 2 --beta 1 --coupling -1 --kernel swendsen-wang", ("couplings >= 0", "use 'gibbs'")),
    (f"{ISING} --order spiral", ("unknown order 'spiral'", "raster")),
    (f"{ISING} --block 9x9x9", ("block '9x9x9' does not fit",)),
    (f"{ISING} --schedule many", ("schedule is 'many'", "1-8")),
    (f"{ISING} --device tpu9", ("device 'tpu9' is not available", "--device cpu")),
    (f"{ISING} --time-limit soon", ("duration 'soon' is not understood", "10m")),
    (f"{ISING} --steps", ("--steps needs a value; give a whole number",)),
    (f"{ISING} --steps --seed 3", ("--steps needs a value",)),
    (f"{ISING} potts", ("'potts' is one argument too many",)),
    (f"{ISING} --q 3", ("target ising has no argument --q", "--size, --beta, --coupling, --field")),
    ("train isng --size 2", ("unknown target 'isng'", "'ising'")),
    ("train ising --size 4", ("target ising needs --beta", "sabre list")),
    ("train ising", ("target ising needs --size and --beta",)),
    ("train ising --size 1 --beta 1", ("size=1 is out of range", "at least 2")),
    ("train ising --size 2 --beta nan", ("beta=nan is not a finite number",)),
    ("train potts --size 2 --q 3 --beta 1 --field 1,2", ("2 entries", "give q=3")),
    ("train manywell --dim 3", ("dim=3 is odd", "choose 2 or 4")),
    ("train nowhere:f --dim 2 --num-categories 2", ("there is no module 'nowhere'", "PYTHONPATH")),
    ("train os:getcwdd --dim 2 --num-categories 2", ("unknown attribute of module os", "Did you mean")),
    ("train os.path:join --dim 2", ("give num_categories too",)),
    ("train --preset paper/gmm41-d16", ("unknown preset", "'paper/gmm40-d16'")),
    ("train ising --preset paper/gmm40-d16", ("target 'ising' cannot be given with --preset", "leave out one")),
    ("train --size 3 --preset paper/gmm40-d16", ("--size cannot be given with --preset", "target of its own")),
    ("train --resume", ("--resume needs the directory of one run", "sabre train DIRECTORY --resume")),
    ("train nothing --resume", ("nothing holds no run", "check the path")),
    ("train nothing --resume --steps 9", ("--steps cannot be given with --resume", "sabre train nothing --resume")),
    ("train ising --size 4 --beta 1 --run-dir r --resume", ("cannot be given with --resume",)),
    ("evaluate", ("sabre evaluate needs a directory", "sabre evaluate runs/ising")),
    ("evaluate nothing", ("nothing holds no run", "check the path")),
    ("report nothing", ("nothing holds no run",)),
    ("sample nothing -n 3", ("--out samples.npz",)),
    ("sample nothing -n 3 --out x.npz", ("nothing holds no run",)),
    ("sample nothing --out no/such/x.npz", ("existing directory", ".npz")),
    ("exact", ("no target is named", "sabre exact ising")),
    ("exact ising --beta 0.4", ("target ising needs --size",)),
    ("exact ising --dim 3", ("target ising has no argument --dim",)),
    ("list --jsno", ("unknown option --jsno",)),
]


@pytest.mark.parametrize(("line", "key_words"), LINES, ids=[line for line, _ in LINES])
def test_a_mistake_is_explained_and_nothing_is_left_behind(line, key_words, refused):
    refused(line, *key_words)
    assert list(Path().iterdir()) == []


CONFIGS = {
    "target: ising\nbacth_size: 3": ("unknown option in c.yaml: 'bacth_size'", "'batch_size'"),
    "target: ising\nq: 3": ("unknown argument of target ising 'q'",),
    "target: ising\nsize: 2\nbeta: 1\nsteps: 3.5": ("is 3.5; give a whole number",),
    "target: ising\nsize: 2\nbeta: 1\nsteps: -3": ("steps is -3",),
    "target: ising\nsize: 2\nbeta: 1\ninformed: 3": ("is 3; give true or false",),
    "target: [ising": ("c.yaml is not YAML (line 1: expected", "correct it"),
    "just words": ("holds no options", "steps: 3000"),
    "preset: 3": ("unknown preset",),
    "preset: paper/gmm40-d16\nsize: 3": ("--size cannot be given with --preset",),
}


@pytest.mark.parametrize("text", CONFIGS)
def test_a_faulty_config_file_is_explained(text, refused):
    Path("c.yaml").write_text(text)
    refused("train --config c.yaml", *CONFIGS[text])
    refused("train --config none.yaml", "none.yaml cannot be read", "check the path")
    assert [path.name for path in Path().iterdir()] == ["c.yaml"]


def test_a_directory_that_holds_another_run_stays_as_it_is(refused):
    assert main(f"{ISING} --run-dir r".split()) == 0
    before = contents("r")
    refused(f"{ISING} --run-dir r --seed 5", "holds a run already", "--resume", "another directory")
    refused("train r", "r holds a run, it is no target", "add --resume")
    refused("train r --resume --seed 5", "--seed cannot be given with --resume")
    refused("sample r -n 0 --out x.npz", "n=0", "at least 1")
    refused("evaluate r --samples 1", "at least 2")
    assert contents("r") == before


def test_a_directory_in_use_stays_as_it_is(refused):
    assert main(f"{ISING} --run-dir r".split()) == 0
    (Path("r") / ".lock").unlink()
    child = forked(_hold_lock)
    try:
        deadline = time.monotonic() + 30
        while not (Path("r/.lock").exists() and Path("r/.lock").read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        before = contents("r")
        refused("train r --resume", f"in use by process {child}", "wait for it")
        assert contents("r") == before
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert main(["train", "r", "--resume", "--quiet"]) == 0


def _hold_lock() -> None:
    with RunDirectory("r").lock():
        time.sleep(60)


def test_a_start_in_a_directory_in_use_is_refused(refused, capsys):
    directory = RunDirectory("runs/ising-tb+replay+mcmc-seed0")
    directory.write_config({"target": None, "options": {}})
    with directory.lock():
        before = contents("runs")
        refused(f"{ISING} --run-dir {directory.path}", f"in use by process {os.getpid()}", "another --run-dir")
        assert contents("runs") == before
        assert main(ISING.split()) == 0
        assert "run directory: runs/ising-tb+replay+mcmc-seed0-2\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["config.yaml", "metrics.jsonl", "results.json"])
def test_the_files_of_something_else_are_not_touched(name, refused):
    Path("project").mkdir()
    Path("project", name).write_text("important: mine\n")
    refused(f"{ISING} --run-dir project", "holds files of something else", "choose another directory")
    assert [(path.name, path.read_text()) for path in Path("project").iterdir()] == [(name, "important: mine\n")]
    if name == "config.yaml":
        refused("evaluate project", "not that of a run", "check the path")


def test_a_damaged_run_is_explained(refused):
    assert main(f"{ISING} --run-dir r".split()) == 0
    weights = Path("r/checkpoints/step-000000004/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    before = contents("r")
    refused("train r --resume --quiet", "none of the 1 checkpoints", "restore one")
    assert {key: value for key, value in contents("r").items() if ".lock" not in key} == {
        key: value for key, value in before.items() if ".lock" not in key
    }
    Path("r/config.yaml").write_text("target: [")
    refused("evaluate r", "config.yaml is not YAML", "restore it")


def test_debug_shows_where_an_error_came_from(capsys):
    assert main(["train", "isng", "--debug"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "error: unknown target 'isng'" in err


class Net(torch.nn.Module):
    """A network that answers whatever it is told to."""

    def __init__(self, answer, size=1):
        super().__init__()
        self.answer, self.weight = answer, torch.nn.Parameter(torch.zeros(size), requires_grad=size > 0)

    def forward(self, state):
        return self.answer(state)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda state: torch.zeros(*state.shape, 3), r"shape \(8, 16, 3\) for states of shape \(8, 16\)"),
        (lambda state: torch.zeros(*state.shape), r"floats of shape \(8, 16, 2\)"),
        (lambda state: torch.zeros(*state.shape, 2, dtype=torch.long), "returned torch.int64"),
        (lambda state: state.tolist(), "returned list"),
    ],
)
def test_a_network_of_the_wrong_form_is_explained(answer, message):
    options = sabre.Options(method="tb", batch_size=8, steps=2)
    with pytest.raises(InvalidArgumentError, match=message):
        sabre.train(Ising(4, 0.4), net=Net(answer), options=options, progress=False)


def test_a_network_without_parameters_is_refused():
    with pytest.raises(InvalidArgumentError, match="no parameters to train"):
        sabre.train(Ising(4, 0.4), net=torch.nn.Identity(), progress=False)


def test_options_of_the_wrong_type_are_explained():
    """In a process of its own, where types are not checked at run time."""
    code = """
        import sabre
        for name, value in (("informed", "no"), ("eval_schedule", ""), ("block", 2)):
            try:
                sabre.Options(**{name: value})
            except sabre.SabreError as error:
                print(error)
        try:
            sabre.mcmc.run(lambda x: x, "gibbs")
        except sabre.SabreError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    informed, schedule, block, function = done.stdout.splitlines()
    assert informed == "informed is 'no'; give True or False"
    assert schedule == "eval_schedule is ''; give text, such as '1'"
    assert block == "block is 2; give text, such as 'auto'"
    assert "wrap a function as sabre.Target" in function


@pytest.mark.parametrize(
    ("method", "priority"), [("ce+replay", "density"), ("rkl+replay+mcmc", "uniform"), ("ce+replay+mcmc", "density")]
)
def test_a_priority_after_which_nobody_knows_the_law_of_a_batch_is_refused(method, priority):
    with pytest.raises(InvalidArgumentError, match="follow neither the model nor the target"):
        sabre.Options(method=method, priority=priority)
    assert sabre.Options(method="lv+replay+mcmc", priority=priority).priority == priority


def test_a_network_of_ones_own_is_given_where_it_is_asked_for():
    with pytest.raises(InvalidArgumentError, match="no network was given; pass the module itself"):
        sabre.train(Ising(4, 0.4), net="custom", progress=False)
    assert main(f"{ISING} --net mlp --run-dir r".split()) == 0
    with pytest.raises(InvalidArgumentError, match="that of this run is 'mlp'; leave out net"):
        sabre.load("r", net=Net(torch.zeros))


def test_too_much_memory_is_explained(refused):
    refused(f"{ISING} --run-dir r --buffer-size 99999999999999", "not enough memory", "smaller batch_size, buffer_size")
