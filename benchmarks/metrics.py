"""Seconds and peak memory of every metric between two sets of true samples.

    python benchmarks/metrics.py                                        all metrics and targets, n = 4096 and 16384
    python benchmarks/metrics.py --only transport mmd --target ising    some metrics, targets whose name has a word
    python benchmarks/metrics.py --n 1024 --errors                      with the standard errors, as `compare` does

Each figure comes from a process of its own, the fastest of `--turns` ones, since others may use the machine. Samples
are exact, or from Swendsen-Wang on lattices, and are drawn once per target.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from sabre.evaluation.truth import true_samples
from sabre.metrics import METRICS, applicable, compare
from sabre.targets import GMM40, AbstractTarget, Ising, ManyWell, Potts

TARGETS: dict[str, AbstractTarget] = {
    "ising16 critical": Ising(16, 0.4407),
    "ising16 beta 0.6": Ising(16, 0.6),
    "ising16 beta 1.2": Ising(16, 1.2),
    "potts16 critical": Potts(16, 3, 1.005),
    "gmm40-d4": GMM40(4),
    "manywell-d10": ManyWell(10),
}
SHARED = ("mmd_unbiased", "energy_w1")
"""Come out of the same work as the metric before them."""


def measure(target: str, metric: str, n: int, file: str, has_errors: bool) -> dict[str, Any]:
    x, true_x = (part[:n].long() for part in torch.load(file, weights_only=True))
    began = time.perf_counter()
    if has_errors:
        found = compare(TARGETS[target], x, true_x, names=[metric])[metric]
        value, details = found.value, found.details
    else:
        value, details = METRICS[metric](TARGETS[target], x, true_x)[metric]
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak_gb": peak_gb(), "value": value, "details": details}


def peak_gb() -> float:
    """Of this process alone (Linux): `getrusage` would also know the peak of the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**20


def in_own_process(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--measure", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def show(target: str, metrics: list[str], arguments: argparse.Namespace, file: str) -> None:
    """Draw the samples of a target, then one row per metric and n."""
    drawn = [true_samples(TARGETS[target], max(arguments.n), seed) for seed in (1, 2)]
    torch.save([part.x.to(torch.int16) for part in drawn], file)
    for metric in metrics:
        if metric not in applicable(TARGETS[target]):
            continue
        for n in arguments.n:
            turns = [
                in_own_process(target, metric, str(n), file, str(int(arguments.errors))) for _ in range(arguments.turns)
            ]
            best = min(turns, key=lambda row: row["seconds"])
            details = "  ".join(f"{name} {value:.3g}" for name, value in best["details"].items())
            print(
                f"{target:<17} {metric:<20} n {n:<6} {best['seconds']:8.2f} s   peak {best['peak_gb']:5.2f} GB   "
                f"value {best['value']:<12.6g} {details}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(METRICS), help="metrics (default: all)")
    parser.add_argument("--target", default="", help="targets with this in their name (default: all)")
    parser.add_argument("--n", nargs="+", type=int, default=[4096, 16384], help="sample sizes")
    parser.add_argument("--turns", type=int, default=1, help="processes per figure")
    parser.add_argument("--errors", action="store_true", help="with the standard errors")
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        target, metric, n, file, has_errors = arguments.measure
        print(json.dumps(measure(target, metric, int(n), file, has_errors == "1")))
        return
    metrics = arguments.only or [name for name in METRICS if name not in SHARED]
    with tempfile.TemporaryDirectory() as folder:
        for target in TARGETS:
            if arguments.target in target:
                show(target, metrics, arguments, str(Path(folder) / "samples.pt"))


if __name__ == "__main__":
    main()
