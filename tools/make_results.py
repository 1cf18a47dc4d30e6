"""Train and evaluate what results/ holds, and render its page.

    python tools/make_results.py                 run what is missing, then render
    python tools/make_results.py --only ising    names that contain a word
    python tools/make_results.py --render        results/README.md from the JSON files alone

Each entry is a run directory under runs/results/ that can be stopped and resumed; its results.json, with provenance,
is copied to results/NAME.json.
"""

import argparse
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import sabre
from sabre.presets import make_preset
from sabre.reproduce import EXPERIMENTS
from sabre.reproduce.sheet import sheets, tally

ROOT = Path(__file__).parent.parent
RUNS, RESULTS = ROOT / "runs" / "results", ROOT / "results"
NUM_SAMPLES = 16_384


class Entry(NamedTuple):
    """What to train, and what the paper has for it: (ELBO, EUBO) of the same method, of the best one for lattices."""

    target: Any
    options: sabre.Options
    paper: tuple[float, float] | None


def _paper(preset: str, method: str, bounds: tuple[float, float], **changes: Any) -> Callable[[], Entry]:
    def build() -> Entry:
        target, options = make_preset(preset)
        return Entry(target, options.replace({"method": method} | changes), bounds)

    return build


def _ising(beta: float, steps: int, seed: int, bounds: tuple[float, float]) -> Callable[[], Entry]:
    options = sabre.Options(method="tb+replay+mcmc", net="causal", steps=steps, seed=seed)
    return lambda: Entry(sabre.targets.Ising(size=16, beta=beta), options, bounds)


ENTRIES: dict[str, Callable[[], Entry]] = {
    "gmm40-d16-tb+replay+mcmc": _paper("paper/gmm40-d16", "tb+replay+mcmc", (-3.84, 0.64)),
    "gmm40-d16-tb": _paper("paper/gmm40-d16", "tb", (-1.29, 14.99)),
    "gmm40-d16-tb-depth2": _paper("paper/gmm40-d16", "tb", (-1.29, 14.99), depth=2),
    "manywell-d32-tb+replay": _paper("paper/manywell-d32", "tb+replay", (19.80, 20.93)),
    "ising16-critical-causal-seed0": _ising(0.4407, 3000, 0, (238.48, 238.80)),
    **{f"ising16-low-causal-seed{seed}": _ising(0.6, 4000, seed, (310.43, 310.55)) for seed in (0, 1, 2)},
    **{f"ising16-lower-causal-seed{seed}": _ising(1.2, 2000, seed, (615.07, 615.12)) for seed in (0, 1, 2)},
}


def make(name: str) -> None:
    """Train (or go on with) one entry and keep its results."""
    directory = RUNS / name
    if (directory / "config.yaml").exists():
        run = sabre.resume(directory)
    else:
        entry = ENTRIES[name]()
        options = entry.options.replace({"final_samples": NUM_SAMPLES})
        run = sabre.train(entry.target, options=options, run_dir=directory)
    if run.finished:
        shutil.copy(directory / "results.json", RESULTS / f"{name}.json")
        print(f"{name}\n{run.results['elbo']} {run.results['eubo']}")


def render() -> None:
    """results/README.md: every file, beside the paper and the truth."""
    lines = [
        "# Measured results",
        "",
        "Made by `tools/make_results.py`; each row is one JSON file in this folder, with seed, versions, commit,",
        "command, machine, wall-clock and energy evaluations. Standard errors in brackets. The paper's values are for",
        "its own networks; the rows for lattices stand beside its best method. Seconds are those of",
        "training on a shared machine.",
        "",
        "| | exact log Z | ELBO | EUBO | log Z (weighted) | ESS | spin-flip images | paper ELBO / EUBO | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, build in ENTRIES.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            lines.append(_row(name, json.loads(path.read_text()), build().paper))
    lines += ["", *_tables()]
    if (RESULTS / "steps.json").exists():
        lines += ["", *_speed(json.loads((RESULTS / "steps.json").read_text()))]
    (RESULTS / "README.md").write_text("\n".join(lines) + "\n")


def _tables() -> list[str]:
    """The tables of the paper that were made again, with how they compare."""
    lines = ["## The paper's tables", "", "Made by `sabre reproduce NAME`, each with its figures and provenance.", ""]
    for name, experiment in EXPERIMENTS.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            data = json.loads(path.read_text())
            runs = sum(len(row["runs"]) for row in data["rows"])
            facts = f"{runs} runs at scale `{data['scale']}`. {tally(sheets(data))}".rstrip()
            lines.append(f"- [{experiment.title}]({name}.md): {facts}")
    return lines


def _row(name: str, found: dict[str, Any], paper: tuple[float, float] | None) -> str:
    cells = [_figure(found[key]) for key in ("elbo", "eubo", "log_z", "ess")]
    phases = " / ".join(f"{phase['value']:.3f}" for phase in found["phases"]) or "-"
    beside = "-" if paper is None else f"{paper[0]} / {paper[1]}"
    seconds = f"{found['provenance']['wall_clock_s']:.0f}"
    exact = f"{found['log_z_exact']:.4f}"
    return f"| [{name}]({name}.json) | {exact} | {' | '.join(cells)} | {phases} | {beside} | {seconds} |"


def _figure(figure: dict[str, float] | None) -> str:
    return "-" if figure is None else f"{figure['value']:.4f} ({figure['stderr']:.4f})"


def _speed(steps: dict[str, Any]) -> list[str]:
    lines = [
        "## Speed",
        "",
        "Made by `benchmarks/steps.py` in one run: milliseconds per gradient step at batch 128, rollout included;",
        "times faster than a peer's code, its figures scaled by the rate of PyTorch's matrix product; share that is",
        "reached of the fastest route to such a product.",
        "",
        "| | on-policy ms | off-policy ms | faster (on / off / R = 2) | share of the rate (on / off) | peak GB |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in steps.items():
        if "speedup" in row:
            times = " | ".join(f"{row['ms'][kind]:.1f}" for kind in ("on_policy", "off_policy"))
            faster = " / ".join(f"{row['speedup'][kind]:.1f}" for kind in ("on_policy", "off_policy", "mixed"))
            share = " / ".join(f"{row['fraction'][kind]:.0%}" for kind in ("on_policy", "off_policy"))
            lines.append(f"| {name} | {times} | {faster} | {share} | {row['peak_gb']:.1f} |")
    if "scaling" in steps:
        exponent = steps["scaling"]["exponent"]
        lines += [
            "",
            f"Causal network, d = 64 to 1024: cost per step grows as d^{exponent['on_policy']:.2f} on-policy,",
        ]
        lines += [f"d^{exponent['off_policy']:.2f} off-policy."]
    if "memory" in steps:
        peaks = ", ".join(f"{n} steps {gb:.2f} GB" for n, gb in steps["memory"].items())
        lines += ["", f"Peak memory of the ViT by the number of steps of a trajectory: {peaks}."]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--render", action="store_true")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if not arguments.render:
        for name in ENTRIES:
            if arguments.only in name and not (RESULTS / f"{name}.json").exists():
                make(name)
    render()


if __name__ == "__main__":
    main()
