"""Milliseconds per gradient step, beside the machine's matrix-product rate and a peer's measurements scaled by it.

    python benchmarks/steps.py                 all targets and networks
    python benchmarks/steps.py --only mlp      one family: mlp, vit, causal, scaling, memory

Each figure is the median of several steps in a process of its own, rollout, log density, backward pass and optimiser
included. The machine's rate is the median of PyTorch's float32 products of 2048 x 2048 matrices in between; the peer's
figures are scaled by it. The fraction that a step reaches is that of the fastest route to such a product, which is
twice as fast on some processors; it counts the products and the attention that the step makes (`flops.py`). Others may
use the machine: every process is run a few times, and the one in which the steps were fastest counts.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from flops import Flops

import sabre
from sabre.networks.products import matmul
from sabre.storage import provenance
from sabre.training import TrainingState

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "steps.json"
PEER = json.loads((HERE / "data" / "peer.json").read_text())["step_ms"]
PEER_RATE = 230.0

# name -> (preset, key of the peer's figures, batch that the peer's figures are for)
PAPER = {
    "mlp gmm40-d16": ("paper/gmm40-d16", "gmm40_d16_mlp2x256", 128),
    "mlp gmm40-d32": ("paper/gmm40-d32", "gmm40_d32_mlp4x256", 128),
    "mlp manywell-d32": ("paper/manywell-d32", "manywell_d32_mlp2x256", 128),
    "mlp manywell-d80": ("paper/manywell-d80", "manywell_d80_mlp4x256", 128),
    "vit ising16": ("paper/ising16-critical", "ising16_vit2x64_batch8", 8),
    "vit potts16": ("paper/potts16-critical", "potts16_vit2x128_batch8", 8),
}
CAUSAL = "causal ising16"
SIZES = (8, 16, 32)
STEPS = (16, 64, 256)
TURNS = {"mlp": (3, 12, 20), "vit": (1, 2, 1), "causal": (2, 5, 4)}
"""Processes, rounds in each of them, and steps of each kind in a round."""


def matmul_rate(product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> float:
    """GFLOP/s of a float32 product."""
    a = torch.ones(2048, 2048)
    began = time.perf_counter()
    product(a, a)
    return 2 * 2048**3 / (time.perf_counter() - began) / 1e9


def make_state(name: str) -> TrainingState:
    """The training state that a name stands for."""
    kind, _, what = name.partition(" ")
    if name in PAPER:
        preset = sabre.presets.make_preset(PAPER[name][0])
        return TrainingState(preset.target, preset.options)
    if kind in ("causal", "scaling"):
        size = int(what.removeprefix("ising"))
        return TrainingState(sabre.targets.Ising(size=size, beta=0.4407), sabre.Options())
    return memory_state(int(what))


def memory_state(steps_per_trajectory: int) -> TrainingState:
    """The paper's ViT, 256 sites revealed in the given number of steps."""
    preset = sabre.presets.make_preset("paper/ising16-critical")
    options = preset.options.replace({"schedule": str(256 // steps_per_trajectory), "batch_size": 16, "prefill": 1})
    return TrainingState(preset.target, options)


def measure(name: str, rounds: int, repeats: int) -> dict[str, Any]:
    """Milliseconds of on- and off-policy steps, and what the process needed for them.

    The machine may be shared: steps of both kinds and products take turns, and medians are taken of each.
    """
    state = make_state(name)
    state.experience.store(*_batch_with_weights(state))
    times: dict[str, list[float]] = {"on_policy": [], "off_policy": []}
    flops: dict[str, int] = {}
    for kind in times:
        with Flops() as counter:
            _step(state, kind)
        flops[kind] = counter.total
    rates: list[float] = []
    best: list[float] = []
    for _ in range(rounds):
        rates.append(matmul_rate(torch.matmul))
        best.append(matmul_rate(matmul))
        for kind in times:
            times[kind] += [_milliseconds(state, kind) for _ in range(repeats)]
    rate, fastest = statistics.median(rates), statistics.median(best)
    median = {kind: statistics.median(values) for kind, values in times.items()}
    return {
        "ms": median,
        "rate_gflops": rate,
        "fastest_gflops": fastest,
        "fraction": {kind: flops[kind] / (median[kind] * 1e6) / fastest for kind in times},
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "num_tokens": state.sampler.process.num_tokens,
        "dim": state.target.dim,
    }


def _milliseconds(state: TrainingState, kind: str) -> float:
    began = time.perf_counter()
    _step(state, kind)
    return 1e3 * (time.perf_counter() - began)


def _batch_with_weights(state: TrainingState) -> tuple[Any, Any]:
    batch = state.experience.sample_on_policy()
    return batch, batch.log_density - batch.log_pf


def _step(state: TrainingState, kind: str) -> None:
    experience = state.experience
    batch = experience.sample_on_policy() if kind == "on_policy" else experience.replay()
    state.learner.update(batch, beta=1.0, rate=1.0, noise=state.noises["drop"])


def in_own_process(name: str, turns: Sequence[int]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name, *map(str, turns)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def show_paper(name: str, found: dict[str, Any]) -> None:
    """One row per kind of step: ours, the peer's scaled to this machine, and the ratio."""
    _, key, peer_batch = PAPER.get(name, (None, "ising16_vit2x64_batch8", 8))
    slices = 128 / peer_batch
    found["speedup"] = {}
    peers = {kind: PEER[key][kind] * slices * PEER_RATE / found["rate_gflops"] for kind in found["ms"]}
    found["speedup"]["mixed"] = _mixed(peers) / _mixed(found["ms"])
    for kind, ms in found["ms"].items():
        peer = peers[kind]
        found["speedup"][kind] = peer / ms
        print(
            f"{name:<18} {kind:<11} {ms:9.1f} ms   peer {peer:9.1f} ms   {peer / ms:6.1f} x   "
            f"rate {found['rate_gflops']:.0f} GFLOP/s   {found['fraction'][kind]:4.0%} of "
            f"{found['fastest_gflops']:.0f} GFLOP/s   peak {found['peak_gb']:.1f} GB",
            flush=True,
        )
    print(f"{name:<18} at R = 2     {_mixed(found['ms']):8.1f} ms   {found['speedup']['mixed']:26.1f} x", flush=True)


def _mixed(ms: dict[str, float]) -> float:
    """The mean step of off-policy training with R = 2."""
    return (ms["on_policy"] + 2 * ms["off_policy"]) / 3


def _cost(row: dict[str, Any]) -> float:
    """The mean step, in units of what the machine can do in a millisecond."""
    return _mixed(row["ms"]) * row["rate_gflops"]


def show_scaling(rows: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Cost against the number of sites, with the exponent of a power law between the ends."""
    exponents = {}
    for kind in ("on_policy", "off_policy"):
        points = [(row["dim"], row["ms"][kind]) for row in rows.values()]
        (d0, t0), (d1, t1) = points[0], points[-1]
        exponents[kind] = math.log(t1 / t0) / math.log(d1 / d0)
        text = "  ".join(f"d={d}: {ms:.0f} ms" for d, ms in points)
        print(f"causal {kind:<11} {text}   ms ~ d^{exponents[kind]:.2f}")
    return exponents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["mlp", "vit", "causal", "scaling", "memory"])
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, rounds, repeats = arguments.measure
        print(json.dumps(measure(name, int(rounds), int(repeats))))
        return
    began = time.monotonic()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for kind, (processes, *turns) in TURNS.items():
        if arguments.only in (None, kind):
            names = [name for name in (*PAPER, CAUSAL) if name.startswith(kind)]
            found = [{name: in_own_process(name, turns) for name in names} for _ in range(processes)]
            for name in names:
                results[name] = min(
                    (row[name] for row in found), key=lambda row: _mixed(row["ms"]) * row["rate_gflops"]
                )
                show_paper(name, results[name])
    if arguments.only in (None, "scaling"):
        rows = {f"scaling {size}": in_own_process(f"scaling {size}", (2, 3)) for size in SIZES}
        results["scaling"] = {"rows": rows, "exponent": show_scaling(rows)}
    if arguments.only in (None, "memory"):
        results["memory"] = {str(steps): in_own_process(f"memory {steps}", (1, 1))["peak_gb"] for steps in STEPS}
        rise = max(results["memory"].values()) / min(results["memory"].values())
        print(f"peak GB of the ViT by steps per trajectory: {results['memory']}, largest / smallest = {rise:.2f}")
    results["provenance"] = provenance(sys.argv) | {"wall_clock_s": time.monotonic() - began}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
