"""The figures of an evaluation for people."""

from collections.abc import Mapping
from typing import Any

from sabre.metrics import Estimate

__all__ = ["LOW_ESS", "cautions", "scores_text"]

LOW_ESS = 0.05
_ROWS = (("elbo", "ELBO"), ("log_z", "log Z"), ("eubo", "EUBO"), ("ess", "ESS"))


def scores_text(results: Mapping[str, Any]) -> str:
    """The figures of an evaluation with their standard errors, and the exact log Z below them."""
    lines = [f"{title:<12}{_figure(results[key])}" for key, title in _ROWS]
    exact = results["log_z_exact"]
    lines.append(f"{'exact log Z':<12}{'unknown' if exact is None else f'{exact:.5f}'}")
    if "log_z_resampled" in results:
        lines.insert(2, f"{'resampled':<12}{_figure(results['log_z_resampled'])}")
    if results["phases"]:
        lines.append(f"{'phases':<12}{', '.join(_figure(phase) for phase in results['phases'])}")
    if results["forbidden"]["value"]:
        lines.append(f"{'forbidden':<12}{_figure(results['forbidden'])}")
    lines += _metrics(results.get("metrics", {}))
    if results.get("step", 0) < results.get("steps", 0):
        lines.append(f"this is the state at step {results['step']} of {results['steps']}: the run has not finished")
    return "\n".join([*lines, *cautions(results["ess"]["value"])])


def _metrics(metrics: Mapping[str, Any]) -> list[str]:
    """A line per metric: the model, then what independent true samples reach."""
    lines = []
    for name, figure in metrics.items():
        floor = figure.get("floor")
        beside = "" if floor is None else f"  (true samples: {_figure(floor)})"
        warning = "" if figure.get("converged", True) else "  not converged"
        lines.append(f"{name.replace('_', ' '):<20}{_figure(figure)}{beside}{warning}")
    return lines


def _figure(figure: Mapping[str, float] | None) -> str:
    if figure is None:
        return "no true samples"
    value, stderr = (float("nan") if figure[key] is None else figure[key] for key in ("value", "stderr"))
    return str(Estimate(value, stderr))


def cautions(ess: float | None) -> list[str]:
    """What must be known to read the figures of an evaluation."""
    if ess is None or ess >= LOW_ESS:
        return []
    return [
        f"the effective sample size is below {LOW_ESS:.0%}: samples may miss much of the target, errors are too small"
    ]
