"""From the figures of single runs to one file per experiment."""

import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sabre.reproduce.execute import evaluation_path, is_done
from sabre.reproduce.experiment import Cell, Experiment, Scale
from sabre.reproduce.work import Work
from sabre.storage import provenance

__all__ = ["collect"]

_Figure = dict[str, Any]


def collect(
    experiment: Experiment, scale: Scale, cells: Sequence[Cell], works: Sequence[Sequence[Work]], root: Path
) -> dict[str, Any]:
    """All that is known of an experiment, as plain JSON values: what results/NAME.json holds."""
    rows = []
    for cell, seeds in zip(cells, works, strict=True):
        found = [(work, _read(root, work)) for work in seeds if is_done(root, work)]
        rows.append(
            {
                "section": cell.section,
                "note": cell.note,
                "row": cell.row,
                "repeated": cell.row in experiment.repeated,
                "figures": _figures(experiment.metrics, [result for _, result in found]),
                "floors": _floors([result for _, result in found]),
                "paper": dict(cell.paper),
                "log_z_exact": cell.work.target.log_z_exact,
                "target": repr(cell.work.target),
                "runs": [{"name": work.name, "evaluation": work.evaluation, "results": r} for work, r in found],
            }
        )
    return {
        "experiment": experiment.name,
        "scale": scale.name,
        "num_samples": scale.num_samples,
        "metrics": list(experiment.metrics),
        "rows": rows,
        "provenance": provenance(sys.argv),
    }


def _read(root: Path, work: Work) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(evaluation_path(root, work).read_text("utf-8"))
    return found


def _figures(metrics: Sequence[str], results: Sequence[dict[str, Any]]) -> dict[str, _Figure]:
    """Each metric over the seeds: the mean, its error, and the spread where there are several."""
    figures = {}
    for name in metrics:
        found = [figure for result in results if (figure := _one(name, result)) is not None]
        if found:
            figures[name] = _pooled(found)
    return figures


def _one(name: str, result: dict[str, Any]) -> _Figure | None:
    if name == "num_evaluations":
        return {"value": float(result["provenance"][name]), "stderr": 0.0}
    figure: _Figure | None = result["metrics"].get(name) or result.get(name)
    return figure if figure is not None and figure.get("value") is not None else None


def _pooled(figures: Sequence[_Figure]) -> _Figure:
    """One run: its figure and error. Several: their mean, their standard deviation, and the error of the mean."""
    values = [float(figure["value"]) for figure in figures]
    pooled: _Figure = {"value": statistics.fmean(values), "num_runs": len(values)}
    if len(values) == 1:
        pooled |= {"stderr": figures[0]["stderr"], "std": None}
    else:
        std = statistics.stdev(values)
        pooled |= {"stderr": std / math.sqrt(len(values)), "std": std}
    if any(figure.get("converged") is False for figure in figures):
        pooled["converged"] = False
    return pooled


def _floors(results: Sequence[dict[str, Any]]) -> dict[str, _Figure]:
    """The floor of each metric: the same for all runs, so that of the first one."""
    if not results:
        return {}
    return {name: figure["floor"] for name, figure in results[0]["metrics"].items() if figure.get("floor")}
