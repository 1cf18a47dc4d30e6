"""Samples of a model beside samples of the target: every metric with its error and its floor."""

from typing import Any

from jaxtyping import Int
from torch import Tensor

from sabre.evaluation.truth import TrueSamples, true_samples
from sabre.metrics import MetricValue, Progress, applicable, compare
from sabre.storage import Kept, kept_or_made
from sabre.targets import AbstractTarget

__all__ = ["compare_with_truth", "prepare_truth"]

_TRUTH, _OTHER_TRUTH = 0, 1
"""Seeds of the true samples that models are compared with, and of those that these are compared with."""
_RECIPE = 1
"""Part of the key of the cache: to be raised whenever a metric changes its meaning."""


def compare_with_truth(
    target: AbstractTarget, x: Int[Tensor, "n dim"], progress: Progress | None = None
) -> dict[str, dict[str, Any]] | None:
    """Every metric that applies to the target, as plain JSON values; None where the target has no true samples.

    Each has its `floor`: the same metric between two independent sets of true samples of the same size. All models
    of a target are compared with the same true samples.
    """
    truth = true_samples(target, len(x), _TRUTH, progress)
    if truth is None:
        return None
    floors = _floors(target, truth, progress)
    found = compare(target, x, truth.x, progress=progress)
    return {name: _figure(value) | {"floor": floors.get(name)} for name, value in found.items()}


def prepare_truth(target: AbstractTarget, n: int) -> None:
    """Make what `compare_with_truth` needs for n samples, so that the cache has it."""
    truth = true_samples(target, n, _TRUTH)
    if truth is not None:
        _floors(target, truth, None)


def _figure(value: MetricValue) -> dict[str, Any]:
    return {"value": value.value, "stderr": value.stderr, "seconds": value.seconds} | value.details


def _floors(target: AbstractTarget, truth: TrueSamples, progress: Progress | None) -> dict[str, dict[str, float]]:
    """The metrics between the truth and other true samples, from the cache where it has them."""

    def make() -> Kept:
        other = true_samples(target, len(truth.x), _OTHER_TRUTH, progress)
        assert other is not None
        report: Progress | None = None
        if progress is not None:
            show = progress

            def report(name: str, fraction: float) -> None:
                show(f"floor of {name}", fraction)

        found = compare(target, other.x, truth.x, progress=report)
        return Kept({}, {name: {"value": v.value, "stderr": v.stderr} for name, v in found.items()})

    if target.spec is None or target.imported_from is not None:
        return make().facts
    key = {"target": target.spec, "n": len(truth.x), "metrics": sorted(applicable(target)), "recipe": _RECIPE}
    return kept_or_made("floors", key, make).facts
