"""Doing one piece of work in its own directory: train or walk, judge, keep. What is there already is not done again."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from jaxtyping import Int
from torch import Tensor

from sabre.evaluation import compare_with_truth
from sabre.mcmc import HammingBall, run
from sabre.metrics import Progress
from sabre.reproduce.work import Chains, Work
from sabre.run import Run, load
from sabre.storage import RunDirectory, provenance
from sabre.storage.files import strict_json, write_atomic
from sabre.targets import CheckedTarget
from sabre.train import resume, train

__all__ = ["evaluation_path", "execute", "is_done", "samples_of"]

_SHOWN_SAMPLES = 2000
_Result = dict[str, Any]


def evaluation_path(root: Path, work: Work) -> Path:
    """Where the figures of a piece of work are."""
    return root / work.name / "evaluations" / f"{work.evaluation}.json"


def is_done(root: Path, work: Work) -> bool:
    """Whether its figures are there and can be read."""
    try:
        return bool(json.loads(evaluation_path(root, work).read_text("utf-8")))
    except (OSError, ValueError):
        return False


def samples_of(root: Path, work: Work) -> Int[Tensor, "n dim"] | None:
    """Some of the samples behind the figures, for pictures."""
    path = evaluation_path(root, work).with_suffix(".safetensors")
    return safetensors.torch.load_file(path)["x"].long() if path.exists() else None


def execute(root: Path, work: Work, device: str, progress: Progress | None) -> None:
    """Do the work, or what is left of it; with `progress`, shown while it goes on."""
    if isinstance(work.recipe, Chains):
        result, x = _walk(work, work.recipe, progress)
    else:
        trained = _trained(root / work.name, work, device, shown=progress is not None)
        trained.evaluate(work.num_samples, work.seed + 2, work.schedule, metrics=True, progress=progress)
        result, x = trained.results, trained.sample(min(_SHOWN_SAMPLES, work.num_samples), work.seed, work.schedule)
    _keep(root, work, result, x)


def _trained(directory: Path, work: Work, device: str, shown: bool) -> Run:
    """The finished run of that directory: new, gone on with, or opened."""
    assert not isinstance(work.recipe, Chains)
    known = RunDirectory(directory)
    if not known.exists():
        options = work.recipe.replace({"final_samples": 0, "device": device})
        return train(work.target, options=options, run_dir=directory, progress=shown)
    found = resume(directory, progress=shown)
    return found if found.finished else load(directory, device=device)


def _walk(work: Work, chains: Chains, progress: Progress | None) -> tuple[_Result, Int[Tensor, "n dim"]]:
    """Parallel chains and their samples, judged like those of a model; there are no weights, so no bounds."""
    target, began = CheckedTarget(work.target), time.monotonic()
    found = run(
        target,
        HammingBall(chains.radius),
        num_chains=chains.num_chains,
        burn_in=chains.burn_in,
        num_steps=chains.draws * chains.thin,
        thin=chains.thin,
        seed=chains.seed,
    )
    x = found.samples.flatten(0, 1)[: work.num_samples]
    cost = {"wall_clock_s": time.monotonic() - began, "num_evaluations": target.num_evaluations}
    figures = {"elbo": None, "eubo": None, "log_z": None, "ess": None, "log_z_exact": work.target.log_z_exact}
    about = {"target": repr(work.target), "method": "mh", "num_samples": len(x), "r_hat": found.r_hat}
    about |= {"acceptance": found.acceptance, "autocorrelation_time": found.autocorrelation_time}
    metrics = compare_with_truth(work.target, x, progress) or {}
    origin = {"provenance": {"seed": chains.seed} | provenance(sys.argv) | cost}
    return figures | about | {"metrics": metrics} | origin, x


def _spread(x: Int[Tensor, "n dim"]) -> Int[Tensor, "shown dim"]:
    """Some of the samples, from all over: an odd stride meets all of a power of two of chains that lie side by side."""
    stride = max(1, len(x) // _SHOWN_SAMPLES) | 1
    return x[torch.arange(min(len(x), _SHOWN_SAMPLES)) * stride % len(x)]


def _keep(root: Path, work: Work, result: _Result, x: Int[Tensor, "n dim"]) -> None:
    """Samples first, figures last: where the figures are, everything is."""
    path = evaluation_path(root, work)
    path.parent.mkdir(parents=True, exist_ok=True)
    small = _spread(x).byte().contiguous()
    write_atomic(path.with_suffix(".safetensors"), safetensors.torch.save({"x": small}))
    write_atomic(path, strict_json(result, indent=1).encode())
