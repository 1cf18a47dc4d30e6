"""Tables made again: runs that are done once, figures pooled, every number of the paper in its place."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import sabre.reproduce.execute as execute_module
from sabre.cli.main import main
from sabre.errors import InvalidArgumentError, RunDirectoryError, UnknownNameError
from sabre.options import Options
from sabre.reproduce import EXPERIMENTS, SCALES, Cell, Chains, Experiment, Work, parse_seeds, registry, reproduce
from sabre.reproduce.collect import _pooled
from sabre.reproduce.experiment import works_of
from sabre.reproduce.paper import paper_tables
from sabre.reproduce.sheet import AGREES, BETTER, WORSE, _ours, judge, sheets, tally
from sabre.storage import RunDirectory
from sabre.targets import Ising, Potts

SMALL = Options(
    steps=4, width=8, depth=1, heads=2, batch_size=8, prefill=1, buffer_size=20, eval_interval=0, log_interval=2
)
ISING, POTTS = Ising(3, 0.4), Potts(2, 3, 0.7)


def small_cells(_):
    """Two methods on one target, chains on another; one of them judged in two ways."""
    paper = {"elbo": {"mean": 9.0, "std": 0.5}, "eubo": {"mean": 9.2, "std": 0.1}}
    on_policy, replay = (SMALL.replace({"method": method}) for method in ("tb", "tb+replay"))
    return [
        Cell("ising", "TB", Work(ISING, on_policy, 24), paper),
        Cell("ising", "TB, 2", Work(ISING, on_policy, 24, schedule="2"), {}),
        Cell("ising", "TB + Buffer", Work(ISING, replay, 24), paper),
        Cell("potts", "MH", Work(POTTS, Chains(1, num_chains=4, burn_in=3, draws=6, thin=2), 24), {}),
    ]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A small experiment under a name of its own, and how to make it in a directory."""
    metrics = ("elbo", "eubo", "ess", "transport", "magnetisation_error", "num_evaluations")
    experiment = Experiment("small", "A small one", "For tests.", small_cells, metrics, ("MH",), "lattices")
    monkeypatch.setitem(registry.EXPERIMENTS, "small", experiment)

    def make(**options):
        return reproduce("small", runs=tmp_path / "runs", results=tmp_path / "results", quiet=True, **options)

    return make


def written(folder):
    """All that a call has written but for provenance: what tables, pages and pictures hold."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted((folder / "results").rglob("*"))
        if path.is_file() and path.suffix != ".json"
    }


def executed(monkeypatch):
    done, shipped = [], execute_module.execute

    def counted(root, work, *rest):
        done.append((work.name, work.evaluation))
        return shipped(root, work, *rest)

    monkeypatch.setattr("sabre.reproduce.runner.execute", counted)
    return done


def test_runs_are_done_once_and_what_was_deleted_is_done_again(small, tmp_path, monkeypatch):
    done = executed(monkeypatch)
    first = small(seeds=[0, 1])
    assert len(done) == 5
    tables = written(tmp_path)
    assert {"results/small.md", "results/small.html"} <= set(tables)
    assert any(name.startswith("results/figures/") for name in tables)
    small(seeds=[0, 1])
    assert len(done) == 5
    victim = next(work.name for work in (cell.work for cell in small_cells(None)) if work.method == "tb+replay")
    shutil.rmtree(tmp_path / "runs" / victim)
    again = small(seeds=[0, 1])
    assert [name for name, _ in done[5:]] == [victim]
    assert written(tmp_path) == tables
    for old, new in zip(first["rows"], again["rows"], strict=True):
        assert old["figures"] == new["figures"]


def test_a_call_that_was_stopped_half_way_gives_the_same_tables(small, tmp_path, monkeypatch):
    small(seeds=[0, 1])
    tables = written(tmp_path)
    shutil.rmtree(tmp_path / "runs")
    shutil.rmtree(tmp_path / "results")
    shipped, steps = sabre_algorithm(), []

    def interrupted(*arguments, **named):
        steps.append(0)
        if len(steps) == 7:
            raise KeyboardInterrupt
        return shipped(*arguments, **named)

    monkeypatch.setattr("sabre.training.state.algorithm_1", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(seeds=[0, 1])
    assert not (tmp_path / "results" / "small.md").exists()
    small(seeds=[0, 1])
    assert written(tmp_path) == tables


def sabre_algorithm():
    import sabre.training.state as state

    return state.algorithm_1


def test_workers_side_by_side_do_the_same(small, tmp_path):
    small()
    tables = written(tmp_path)
    shutil.rmtree(tmp_path / "runs")
    small(workers=2)
    assert written(tmp_path) == tables


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import test_reproduce as t
if __name__ == "__main__":
    t.registry.EXPERIMENTS["long"] = t.LONG
    t.reproduce("long", runs={runs!r}, results={results!r}, workers=2, quiet=True)
"""


def _long_cells(_):
    long = SMALL.replace({"steps": 10**6, "checkpoint_interval": 10**7, "checkpoint_minutes": 1e6})
    return [Cell("ising", str(w), Work(ISING, long.replace({"width": w}), 24), {}) for w in (8, 16, 24)]


LONG = Experiment("long", "Long", "For tests.", _long_cells, ("elbo",))


def test_workers_end_with_the_call_and_keep_what_they_have(tmp_path):
    """Killed, not asked: the kernel tells the workers, which save their runs and end."""
    runs = tmp_path / "runs"
    places = {"tests": str(Path(__file__).parent), "runs": str(runs), "results": str(tmp_path / "results")}
    (tmp_path / "call.py").write_text(SCRIPT.format(**places))
    call = subprocess.Popen([sys.executable, str(tmp_path / "call.py")], start_new_session=True)
    try:
        wait_for(lambda: len(list(runs.glob("*/metrics.jsonl"))) == 2)
        call.kill()
        call.wait()
        wait_for(lambda: len(list(runs.glob("*/checkpoints/step-*"))) == 2)
        wait_for(lambda: all(is_free(path) for path in runs.iterdir()))
        assert call.returncode == -signal.SIGKILL
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(call.pid, signal.SIGKILL)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_free(path):
    """Whether nobody works in a run directory."""
    try:
        with RunDirectory(path).lock():
            return True
    except RunDirectoryError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_is_named_and_the_rest_is_done(small, tmp_path, workers):
    broken = small_cells(None)[2].work
    directory = tmp_path / "runs" / broken.name
    directory.mkdir(parents=True)
    (directory / "config.yaml").write_text("something: else\n")
    with pytest.raises(RunDirectoryError, match=rf"1 of the runs of small failed.*{re.escape(broken.name)}"):
        small(workers=workers)
    data = json.loads((tmp_path / "results" / "small.json").read_text())
    assert [len(row["runs"]) for row in data["rows"]] == [1, 1, 0, 1]
    assert "| TB + Buffer | -" in (tmp_path / "results" / "small.md").read_text()


def test_only_some_cells_and_every_seed_for_all(small, monkeypatch):
    done = executed(monkeypatch)
    data = small(only="potts", seeds=[3, 4])
    assert len(done) == 2
    assert [len(row["runs"]) for row in data["rows"]] == [0, 0, 0, 2]
    small(run=False)
    assert len(done) == 2
    small(seeds=[3, 4], repeat_all=True)
    assert len(done) == 2 + 6


def test_the_figures_are_those_of_the_runs(small):
    data = small(seeds=[0, 1])
    row = {row["row"]: row for row in data["rows"]}
    (run,) = row["TB"]["runs"]
    assert row["TB"]["figures"]["elbo"]["value"] == run["results"]["elbo"]["value"]
    assert row["TB"]["figures"]["elbo"]["stderr"] == run["results"]["elbo"]["stderr"]
    assert row["TB"]["figures"]["elbo"]["std"] is None
    assert row["TB"]["figures"]["elbo"] != row["TB, 2"]["figures"]["elbo"]
    assert row["TB"]["runs"][0]["name"] == row["TB, 2"]["runs"][0]["name"]
    values = [run["results"]["metrics"]["transport"]["value"] for run in row["MH"]["runs"]]
    assert row["MH"]["figures"]["transport"]["value"] == pytest.approx(sum(values) / 2)
    assert row["MH"]["figures"]["num_evaluations"]["value"] == 4 * (1 + 3 + 12)
    assert "elbo" not in row["MH"]["figures"]
    assert row["TB"]["floors"]["transport"]["value"] >= 0
    assert run["results"]["provenance"]["seed"] == 0
    seeds = [run["results"]["provenance"]["seed"] for run in row["MH"]["runs"]]
    assert seeds == [0, 1]
    assert len({run["name"] for run in row["MH"]["runs"]}) == 2


def test_the_samples_that_are_shown_come_from_every_chain():
    x = (torch.arange(16_384) % 128).unsqueeze(1)
    shown = execute_module._spread(x)
    assert shown.shape == (2000, 1)
    assert len(shown.unique()) == 128
    assert len(execute_module._spread(x[:100])) == 100


def test_a_figure_with_a_larger_error_keeps_its_digits():
    assert _ours("sinkhorn", {"value": 0.6364, "stderr": 53.02, "std": None}) == "0.636 ± 53"
    assert _ours("sinkhorn", {"value": 94.27, "stderr": 2.31, "std": 5.0, "converged": False}) == "94.3 ± 5.0 *"


def test_seeds_are_pooled_into_mean_spread_and_error():
    one = _pooled([{"value": 2.0, "stderr": 0.3}])
    assert one == {"value": 2.0, "num_runs": 1, "stderr": 0.3, "std": None}
    three = _pooled([{"value": v, "stderr": 9.0, "converged": v < 3} for v in (1.0, 2.0, 6.0)])
    assert three["value"] == 3.0
    assert three["std"] == pytest.approx(7**0.5)
    assert three["stderr"] == pytest.approx((7 / 3) ** 0.5)
    assert three["converged"] is False


@pytest.mark.parametrize(
    ("metric", "ours", "verdict"),
    [
        ("elbo", 1.9, BETTER), ("elbo", 1.2, AGREES), ("elbo", 0.1, WORSE),
        ("eubo", 1.9, WORSE), ("eubo", 0.8, AGREES), ("eubo", 0.1, BETTER),
        ("num_evaluations", 7.0, ""), ("elbo", float("nan"), ""),
    ],
)  # fmt: skip
def test_verdicts_are_within_two_standard_deviations_of_the_paper(metric, ours, verdict):
    assert judge(metric, {"value": ours}, {"mean": 1.0, "std": 0.2}) == verdict
    assert judge("elbo", {"value": 1.3}, {"mean": 1.0, "std": 0.2}) == AGREES
    assert judge(metric, None, {"mean": 1.0, "std": 0.2}) == ""
    assert judge("elbo", {"value": 1.004}, {"mean": 1.0, "std": 0.0}) == AGREES
    assert judge("elbo", {"value": 1.006}, {"mean": 1.0, "std": 0.0}) == BETTER


def test_the_table_shows_ours_the_paper_and_the_floor(small, tmp_path):
    data = small()
    ising, potts = sheets(data)
    assert ising.title == "ising"
    assert f"exact log Z = {ISING.log_z_exact:.5f}" in ising.facts
    assert [label for label, _ in ising.rows] == ["TB", "TB, 2", "TB + Buffer", "true samples"]
    assert ising.rows[0][1][0].paper == "9 ± 0.5"
    assert ising.rows[1][1][0].paper == ""
    assert "elbo" not in potts.metrics
    verdicts = [entry.verdict for _, entries in ising.rows for entry in entries if entry.verdict]
    assert len(verdicts) == 4
    assert re.search(
        rf"Of 4 figures.* {verdicts.count(AGREES)} agree.* {verdicts.count(WORSE)} are worse", tally([ising, potts])
    )
    assert tally([potts]) == ""
    markdown = (tmp_path / "results" / "small.md").read_text()
    assert "# A small one" in markdown
    assert markdown.count("| true samples |") == 2
    for file in re.findall(r"\]\((figures/[^)]+)\)", markdown):
        assert (tmp_path / "results" / file).stat().st_size > 100
    page = (tmp_path / "results" / "small.html").read_text()
    assert page.count("<table") == 2
    assert "http" not in page.replace("http://www.w3.org", "")


PAPER_KEYS = {
    "table-ising": ["ising_16x16"],
    "table-potts": ["potts_16x16_q3"],
    "table-synthetic": ["synthetic"],
    "ablation-annealing": ["ablation_annealing"],
    "ablation-mcmc": ["ablation_mcmc"],
    "ablation-unmasking": ["ablation_unmasking"],
    "ablation-partial": ["ablation_partial"],
    "energy-evaluations": ["energy_evaluations_millions"],
    "ablation-ratio": [],
    "leaps": ["leaps"],
}


def published(key):
    """How many cells a table of the paper has."""
    table = paper_tables()[key]
    if isinstance(table, list):
        return len(table)
    return sum(len(row) if isinstance(row, dict) else 1 for row in table.values())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_of_the_paper_has_a_place(name):
    cells = EXPERIMENTS[name].cells(SCALES["paper"])
    with_paper = {(cell.section.partition(",")[0], cell.row) for cell in cells if cell.paper}
    assert len(with_paper) == sum(map(published, PAPER_KEYS[name]))
    assert all(metric in EXPERIMENTS[name].metrics for cell in cells for metric in cell.paper)
    assert set(EXPERIMENTS[name].repeated) <= {cell.row for cell in cells} or name == "ablation-ratio"


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_cells_are_runs_of_their_own_and_scaled(name, scale):
    cells = EXPERIMENTS[name].cells(SCALES[scale])
    assert len({(cell.section, cell.row) for cell in cells}) == len(cells)
    for cell in cells:
        again = Work(cell.work.target, cell.work.recipe, cell.work.num_samples, cell.work.schedule)
        assert again.name == cell.work.name
        assert cell.work.with_seed(5).name != cell.work.name
        assert re.fullmatch(r"[\w.+-]+", cell.work.name)


def test_names_do_not_change_with_defaults_and_do_with_everything_else():
    """An option at its default is no part of the name; any other value is, but for what has no effect on the run."""
    work = Work(ISING, SMALL, 24)
    assert (
        Work(ISING, SMALL.replace({"kappa": Options().kappa, "device": "cpu", "log_interval": 7}), 24).name == work.name
    )
    others = [SMALL.replace({"kappa": 3.0}), SMALL.replace({"steps": 5}), SMALL.replace({"width": 9})]
    names = {Work(ISING, options, 24).name for options in others} | {Work(Ising(3, 0.41), SMALL, 24).name, work.name}
    assert len(names) == 5
    assert Work(ISING, SMALL, 25).name == work.name
    assert Work(ISING, SMALL, 25).evaluation != work.evaluation


def test_the_scale_changes_the_steps_and_nothing_else():
    full, quarter = (EXPERIMENTS["table-synthetic"].cells(SCALES[scale]) for scale in ("paper", "quarter"))
    for a, b in zip(full, quarter, strict=True):
        if isinstance(a.work.recipe, Chains):
            assert a.work.key == b.work.key
        else:
            assert b.work.recipe == a.work.recipe.replace({"steps": a.work.recipe.steps // 4})
    assert {cell.work.recipe.steps for cell in full if cell.row == "TB + Buffer"} == {20_000}
    assert {cell.work.num_samples for cell in full} == {16_384}


@pytest.mark.parametrize(
    ("name", "option", "values"),
    [
        ("ablation-ratio", "off_to_on", {0.25, 0.5, 1.0, 2.0, 4.0, 8.0}),
        ("ablation-partial", "drop", {0.0, 0.25, 0.5, 0.75, 0.875}),
        ("ablation-annealing", "anneal", {0.0, 0.3}),
        ("ablation-mcmc", "kernel", {"hamming", "swendsen-wang"}),
        ("ablation-unmasking", "schedule", {"1", "2", "4", "8", "16"}),
    ],
)
def test_an_ablation_varies_its_own_option(name, option, values):
    """Behind each row label stands the value that it names."""
    cells = [cell for cell in EXPERIMENTS[name].cells(SCALES["paper"]) if not cell.row.startswith("MDNS")]
    found = {
        cell.row: (cell.work.schedule if option == "schedule" else getattr(cell.work.recipe, option)) for cell in cells
    }
    assert set(found.values()) == values
    for row, value in found.items():
        if name in ("ablation-ratio", "ablation-partial", "ablation-unmasking"):
            assert float(re.split(r", (?:R = )?", row)[-1]) == float(value)
        if name == "ablation-mcmc":
            assert ("MH" in row) == (value == "hamming")
        if name == "ablation-annealing":
            assert ("w/o" in row) == (value == 0)


def test_repeated_rows_get_every_seed():
    cells = small_cells(None)
    assert [[w.seed for w in works] for works in works_of(cells, [2, 5], ["MH"])] == [[2], [2], [2], [2, 5]]


@pytest.mark.parametrize("text", ["", "a", "0,0", "-1", "0;1"])
def test_wrong_seeds_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="0,1,2"):
        parse_seeds(text)


def test_wrong_names_are_refused(small):
    with pytest.raises(UnknownNameError, match="table-ising"):
        reproduce("table-isin")
    with pytest.raises(UnknownNameError, match="quarter"):
        small(scale="quater")
    with pytest.raises(InvalidArgumentError, match="workers is 0"):
        small(workers=0)


SMOKE = [
    ("table-synthetic", "40gmm_d16"), ("table-ising", "beta=0.6, 8 x 8"), ("table-potts", "beta=1.2, 16 x 16, causal"),
    ("ablation-annealing", "40gmm_d32"), ("ablation-ratio", "40gmm_d32"), ("ablation-mcmc", "ising_beta0.6"),
    ("ablation-unmasking", "TB +"), ("ablation-partial", "TB +"), ("energy-evaluations", ""), ("leaps", "8 x 8"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "only"), SMOKE)
def test_every_experiment_runs_at_the_smallest_scale(name, only, tmp_path, capsys):
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    assert main(["reproduce", name, "--scale", "smoke", "--only", only, "--quiet", *places]) == 0
    assert f"{name}.md" in capsys.readouterr().out
    data = json.loads((tmp_path / "results" / f"{name}.json").read_text())
    chosen = [row for row in data["rows"] if only in f"{row['section']} | {row['row']}"]
    assert chosen
    assert all(len(row["runs"]) == 1 for row in chosen)
    assert all(row["figures"] for row in chosen)


def test_every_experiment_has_a_smoke_test():
    assert {name for name, _ in SMOKE} == set(EXPERIMENTS)
