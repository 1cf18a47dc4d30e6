"""The table of metrics: the model beside what independent true samples reach."""

from collections.abc import Mapping
from typing import Any

from sabre.report.data import ReportData
from sabre.report.markup import escape, format_with_error, table

__all__ = ["metrics_table"]


def metrics_table(data: ReportData) -> str:
    """A row per metric of the results: value, floor, and the distance of the two; nothing where there are none."""
    metrics: Mapping[str, Any] = data.results.get("metrics") or {}
    rows = []
    for name, figure in metrics.items():
        floor = figure.get("floor") or {}
        note = "" if figure.get("converged", True) else " (not converged)"
        rows.append((escape(name.replace("_", " ")) + note, _text(figure), _text(floor), _distance(figure, floor)))
    if not rows:
        return ""
    head = ("Metric", "Model", "True samples", "Distance in standard errors")
    count = data.results.get("num_samples", 0)
    caption = f"Each of {count:,} samples against as many true ones; the floor is that of two sets of true samples."
    return f'{table(head, rows, "figures")}<p class="caption">{caption}</p>'


def _text(figure: Mapping[str, Any]) -> str:
    return format_with_error(figure["value"], figure.get("stderr")) if figure.get("value") is not None else ""


def _distance(figure: Mapping[str, Any], floor: Mapping[str, Any]) -> str:
    """(model - floor) / sqrt(stderr^2 + stderr^2)."""
    model, true, error, true_error = (one.get(key) for key in ("value", "stderr") for one in (figure, floor))
    if model is None or true is None or error is None or true_error is None:
        return ""
    spread = (error**2 + true_error**2) ** 0.5
    return f"{(model - true) / spread:.1f}" if spread > 0 else ""
