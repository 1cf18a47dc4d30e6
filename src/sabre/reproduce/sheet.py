"""The cells of a table as words: our figure, the paper's beside it, and how they compare."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sabre.report import format_number, format_with_error

__all__ = ["AGREES", "BETTER", "LABELS", "WORSE", "Entry", "Sheet", "judge", "sheets", "tally"]

AGREES, BETTER, WORSE = "agrees", "better", "worse"
LABELS = {
    "elbo": "ELBO ↑",
    "eubo": "EUBO ↓",
    "ess": "ESS ↑",
    "log_z": "log Z, weighted",
    "log_z_resampled": "log Z, resampled",
    "sinkhorn": "Sinkhorn ↓",
    "transport": "transport ↓",
    "mmd": "MMD ↓",
    "mmd_unbiased": "MMD², unbiased ↓",
    "magnetisation_error": "magnetisation ↓",
    "correlation_error": "correlation ↓",
    "energy_w1": "energy W1 ↓",
    "energy_tv": "energy TV ↓",
    "num_evaluations": "evaluations / 10⁶",
}
"""What the metrics are called in tables; the arrow points to where better is."""
_HIGHER_IS_BETTER = ("elbo", "ess")
_NOT_JUDGED = ("num_evaluations", "log_z", "log_z_resampled")
_MILLION = 1e6
_HALF_A_DIGIT = 0.005
"""The paper gives two decimals."""


class Entry(NamedTuple):
    """One cell: our figure and the paper's, as text, and one of AGREES, BETTER, WORSE or nothing."""

    ours: str
    paper: str
    verdict: str


class Sheet(NamedTuple):
    """The table of one target: metrics across, methods down, and what true samples reach in the last row."""

    title: str
    facts: str
    metrics: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Entry]]]


def sheets(data: Mapping[str, Any]) -> list[Sheet]:
    """One sheet per section that has runs, without the metrics that none of its rows has."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for row in data["rows"]:
        sections.setdefault(row["section"], []).append(row)
    begun = {title: rows for title, rows in sections.items() if any(row["runs"] for row in rows)}
    return [_sheet(title, rows, data["metrics"]) for title, rows in begun.items()]


def _sheet(title: str, rows: Sequence[dict[str, Any]], metrics: Sequence[str]) -> Sheet:
    used = [name for name in metrics if any(name in row["figures"] for row in rows)]
    lines = [(_row_label(row), [_entry(name, row) for name in used]) for row in rows]
    floors: dict[str, Any] = next((row["floors"] for row in rows if row["floors"]), {})
    if floors:
        line = [Entry(_floor(floors[name]) if name in floors else "", "", "") for name in used]
        lines.append(("true samples", line))
    exact = next((row["log_z_exact"] for row in rows), None)
    known = "" if exact is None else f", exact log Z = {exact:.5f}"
    note = f"; {rows[0]['note']}" if rows[0]["note"] else ""
    return Sheet(title, f"{rows[0]['target']}{known}{note}", used, lines)


def tally(sheets: Sequence[Sheet]) -> str:
    """How many of our figures agree with the paper's, in a sentence; nothing where none has a counterpart."""
    verdicts = [entry.verdict for sheet in sheets for _, entries in sheet.rows for entry in entries if entry.verdict]
    if not verdicts:
        return ""
    counts = [verdicts.count(verdict) for verdict in (AGREES, BETTER, WORSE)]
    return (
        f"Of {len(verdicts)} figures that the paper has too, {counts[0]} agree with it within two of its standard "
        f"deviations, {counts[1]} are better and {counts[2]} are worse."
    )


def _row_label(row: Mapping[str, Any]) -> str:
    count = len(row["runs"])
    return f"{row['row']} ({count} seeds)" if count > 1 else str(row["row"])


def _entry(name: str, row: Mapping[str, Any]) -> Entry:
    figure, paper = row["figures"].get(name), row["paper"].get(name)
    ours = "-" if figure is None else _ours(name, figure)
    return Entry(ours, "" if paper is None else _theirs(name, paper), judge(name, figure, paper))


def _ours(name: str, figure: Mapping[str, Any]) -> str:
    if name == "num_evaluations":
        return f"{figure['value'] / _MILLION:.3f}"
    error = figure["stderr"] if figure["std"] is None else figure["std"]
    value = float(figure["value"])
    text = format_with_error(value, error)
    if error is not None and error > abs(value):
        text = f"{format_number(value, 3)} ± {format_number(error, 2)}"
    return f"{text} *" if figure.get("converged") is False else text


def _theirs(name: str, figure: Mapping[str, float]) -> str:
    if name == "num_evaluations":
        return f"{figure['mean'] / _MILLION:.3f}"
    return f"{format_number(figure['mean'])} ± {figure['std']:g}"


def _floor(figure: Mapping[str, float]) -> str:
    return format_with_error(figure["value"], figure["stderr"])


def judge(name: str, ours: Mapping[str, Any] | None, paper: Mapping[str, float] | None) -> str:
    """AGREES within two of the paper's standard deviations (and half of its last digit), else BETTER or WORSE."""
    if ours is None or paper is None or name in _NOT_JUDGED or not math.isfinite(ours["value"]):
        return ""
    difference = float(ours["value"]) - paper["mean"]
    if abs(difference) <= 2 * paper["std"] + _HALF_A_DIGIT:
        return AGREES
    return BETTER if (difference > 0) == (name in _HIGHER_IS_BETTER) else WORSE
