"""The curves of a training run."""

import math
from typing import Any

import numpy as np

from sabre.report.data import ReportData
from sabre.report.svg import COLOURS, Series, line_chart

__all__ = ["training_curves"]

_SMOOTH_FROM = 60
_MEDIANS = 600


def training_curves(data: ReportData) -> list[str]:
    """Bounds against the exact log Z, effective sample size, loss and gradient norm, as far as they were recorded."""
    exact = {} if data.log_z_exact is None else {"exact": data.log_z_exact}
    bounds = [
        _series(data.metrics, "elbo", "ELBO", COLOURS[0]),
        _series(data.metrics, "eubo", "EUBO", COLOURS[1]),
        _series(data.metrics, "log_z", "log Z learnt", COLOURS[2], dashed=True),
    ]
    ess = [
        _series(data.metrics, "batch_ess", "of a batch", COLOURS[0], faint=True),
        _series(data.metrics, "ess", "at evaluations", COLOURS[0]),
    ]
    charts = [
        _chart("Bounds on log Z", bounds, "nats", exact),
        _chart("Effective sample size", ess, "per sample", {}, y_range=(0.0, 1.0)),
        _noisy_chart("Loss", data.metrics, "loss", COLOURS[1]),
        _noisy_chart("Gradient norm", data.metrics, "grad_norm", COLOURS[3]),
    ]
    return [chart for chart in charts if chart]


def _series(
    metrics: list[dict[str, Any]], key: str, label: str, colour: str, *, dashed: bool = False, faint: bool = False
) -> Series:
    """Records without the key are no gap; a null in one that has it (a value that was not finite) is."""
    records = [record for record in metrics if key in record and "step" in record]
    return Series(label, [r["step"] for r in records], [r[key] for r in records], colour, dashed, faint)


def _chart(
    title: str,
    series: list[Series],
    unit: str,
    references: dict[str, float],
    y_range: tuple[float, float] | None = None,
) -> str:
    drawn = [one for one in series if len(one.x)]
    if not drawn:
        return ""
    return line_chart(title, drawn, x_label="step", y_label=unit, horizontal=references, y_range=y_range)


def _noisy_chart(title: str, metrics: list[dict[str, Any]], key: str, colour: str) -> str:
    """Every record faintly and a running median; on a logarithmic axis where all values are positive."""
    raw = _series(metrics, key, "", colour)
    values = [v for v in raw.y if v is not None and math.isfinite(v)]
    if not values:
        return ""
    series = [Series("each record", raw.x, raw.y, colour, faint=True), _running_median(raw, colour)]
    if len(values) < _SMOOTH_FROM:
        series = [Series(title.lower(), raw.x, raw.y, colour)]
    log_y = min(values) > 0
    return line_chart(title, series, x_label="step", y_label="log scale" if log_y else "", log_y=log_y)


def _running_median(raw: Series, colour: str) -> Series:
    pairs = [(x, y) for x, y in zip(raw.x, raw.y, strict=True) if y is not None and math.isfinite(y)]
    half = max(1, len(pairs) // 60)
    ys = np.array([y for _, y in pairs])
    places = [*range(0, len(ys) - 1, max(1, len(ys) // _MEDIANS)), len(ys) - 1]
    medians = [float(np.median(ys[max(0, i - half) : i + half + 1])) for i in places]
    return Series("running median", [pairs[i][0] for i in places], medians, colour)
