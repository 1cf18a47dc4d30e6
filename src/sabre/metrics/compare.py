"""Every metric between the samples of a model and those of the target, with its standard error."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.metrics.energy import energies, energy_distance
from sabre.metrics.lattice import correlation_error, is_lattice, magnetisation_error
from sabre.metrics.mmd import maximum_mean_discrepancy
from sabre.metrics.points import points
from sabre.metrics.sinkhorn import sinkhorn
from sabre.metrics.transport import optimal_transport
from sabre.targets import AbstractTarget

__all__ = ["METRICS", "Measure", "MetricValue", "Progress", "applicable", "compare"]

_BLOCKS = 16
_SMALLEST_BLOCK = 4

Details = dict[str, float | int | bool]
Measure = Callable[[AbstractTarget, Tensor, Tensor], dict[str, tuple[float, Details]]]
"""(target, x, true_x) -> value and details of each metric that comes out of the same work."""
Progress = Callable[[str, float], None]
"""Called with the name of a metric and the share of all work that is done, 1 at the end."""


@dataclass(frozen=True)
class MetricValue:
    """A metric, its standard error, what it took (shared work is counted for each), and its diagnostics."""

    value: float
    stderr: float
    seconds: float
    details: Details = field(default_factory=dict)


def _transport(target: AbstractTarget, x: Tensor, true_x: Tensor) -> dict[str, tuple[float, Details]]:
    found = optimal_transport(points(target, x), points(target, true_x))
    return {"transport": (found.cost, {"gap": found.gap})}


def _sinkhorn(target: AbstractTarget, x: Tensor, true_x: Tensor) -> dict[str, tuple[float, Details]]:
    found = sinkhorn(points(target, x), points(target, true_x))
    details = {"residual": found.residual, "shortfall": found.shortfall, "converged": found.converged}
    return {"sinkhorn": (found.cost, details)}


def _mmd(target: AbstractTarget, x: Tensor, true_x: Tensor) -> dict[str, tuple[float, Details]]:
    found = maximum_mean_discrepancy(points(target, x), points(target, true_x))
    details: Details = {"bandwidth": found.bandwidth}
    return {"mmd": (found.biased, details), "mmd_unbiased": (found.unbiased_square, details)}


def _magnetisation(target: AbstractTarget, x: Tensor, true_x: Tensor) -> dict[str, tuple[float, Details]]:
    return {"magnetisation_error": (magnetisation_error(target, x, true_x), {})}


def _correlation(target: AbstractTarget, x: Tensor, true_x: Tensor) -> dict[str, tuple[float, Details]]:
    return {"correlation_error": (correlation_error(target, x, true_x), {})}


def _energy(target: AbstractTarget, x: Tensor, true_x: Tensor) -> dict[str, tuple[float, Details]]:
    found = energy_distance(energies(target, x), energies(target, true_x))
    return {
        "energy_tv": (found.total_variation, {"num_bins": found.num_bins}),
        "energy_w1": (found.wasserstein, {}),
    }


METRICS: dict[str, Measure] = {
    "transport": _transport,
    "sinkhorn": _sinkhorn,
    "mmd": _mmd,
    "mmd_unbiased": _mmd,
    "magnetisation_error": _magnetisation,
    "correlation_error": _correlation,
    "energy_tv": _energy,
    "energy_w1": _energy,
}


def applicable(target: AbstractTarget) -> tuple[str, ...]:
    """The names of the metrics that make sense for the target: those of lattices for Ising and Potts only."""
    only_lattices = (_magnetisation, _correlation)
    return tuple(name for name, measure in METRICS.items() if measure not in only_lattices or is_lattice(target))


def compare(
    target: AbstractTarget,
    x: Int[Tensor, "n dim"],
    true_x: Int[Tensor, "m dim"],
    *,
    names: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, MetricValue]:
    """The metrics of those names, else all that apply, between equally many samples of a model and of the target.

    **Standard error.** Both samples are split into K = 16 blocks of every K-th state (fewer where a block would have
    less than four), the metric is computed on each pair of blocks, and the standard error is that of these K values
    over sqrt K. That assumes that members of a sample are independent (of chains that lie side by side, a block takes
    whole ones if K divides their number), and that the metric scatters around its own mean like 1 / sqrt n; its mean
    may depend on n, as a floor does. Where it scatters less, as a metric between equal laws may (an unbiased MMD does
    like 1 / n), the error is overstated, for 1 / n by sqrt K.
    """
    chosen = _checked_names(target, names)
    if len(x) != len(true_x):
        raise InvalidArgumentError(f"compare: {len(x)} samples and {len(true_x)} true ones; give equally many of each")
    measures = list(dict.fromkeys(METRICS[name] for name in chosen))
    blocks = max(1, min(_BLOCKS, len(x) // _SMALLEST_BLOCK))
    found: dict[str, MetricValue] = {}
    for index, measure in enumerate(measures):
        label = next(name for name in chosen if METRICS[name] is measure)

        def report(share: float, label: str = label, index: int = index) -> None:
            if progress is not None:
                progress(label, (index + share) / len(measures))

        report(0.0)
        began = time.perf_counter()
        values = measure(target, x, true_x)
        seconds = time.perf_counter() - began
        report(0.5)
        errors = _standard_errors(measure, target, x, true_x, blocks)
        found |= {name: MetricValue(v, errors[name], seconds, details) for name, (v, details) in values.items()}
        report(1.0)
    return {name: found[name] for name in chosen}


def _standard_errors(
    measure: Measure, target: AbstractTarget, x: Int[Tensor, "n dim"], true_x: Int[Tensor, "n dim"], blocks: int
) -> dict[str, float]:
    """The standard deviation over blocks of equal size, over the root of their number; inf for a single block."""
    size = len(x) // blocks * blocks
    parts = [measure(target, x[k:size:blocks], true_x[k:size:blocks]) for k in range(blocks)]
    if blocks == 1:
        return dict.fromkeys(parts[0], math.inf)
    return {
        name: float(torch.tensor([part[name][0] for part in parts]).double().std()) / math.sqrt(blocks)
        for name in parts[0]
    }


def _checked_names(target: AbstractTarget, names: Iterable[str] | None) -> list[str]:
    known = applicable(target)
    chosen = list(known if names is None else dict.fromkeys(names))
    for name in chosen:
        if name not in METRICS:
            raise UnknownNameError("metric", name, known)
        if name not in known:
            raise InvalidArgumentError(f"compare: {name!r} is not defined for {target.name!r}; use {', '.join(known)}")
    return chosen
