"""The figures of a run: the headline, the table of estimates and the picture of the bounds."""

import math
from dataclasses import dataclass
from typing import Any

from sabre.report.axes import INK, Frame, linear_ticks, padded_range, text
from sabre.report.data import ReportData
from sabre.report.markup import escape, format_exact, format_number, format_tick, format_with_error, table
from sabre.report.svg import COLOURS

__all__ = ["bounds_picture", "estimates_table", "headline"]

_LABELS = {
    "log_z": "log Z, importance-weighted",
    "elbo": "ELBO, a lower bound on log Z",
    "eubo": "EUBO, an upper bound on log Z",
    "ess": "Effective sample size per sample",
    "phases": "Share of phase",
    "forbidden": "Share of forbidden samples",
}


@dataclass(frozen=True)
class _Figure:
    value: float
    stderr: float | None

    def __str__(self) -> str:
        return format_with_error(self.value, self.stderr)


def _figure(entry: Any) -> _Figure | None:
    """An entry {"value", "stderr"} of the results, if it is one with a finite value."""
    if not isinstance(entry, dict) or not _is_finite(entry.get("value")):
        return None
    stderr = entry.get("stderr")
    return _Figure(float(entry["value"]), None if stderr is None or not _is_finite(stderr) else float(stderr))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def headline(data: ReportData) -> str:
    """The estimate of log Z beside the truth, in one sentence, with what has to be known to read it."""
    estimate, source = _best_estimate(data)
    if estimate is None:
        first = "There is no estimate of log Z yet"
    else:
        first = f"log Z is estimated at <strong>{estimate}</strong>{source}"
    if data.log_z_exact is None:
        sentence = f"{first}; its exact value is not known for this target."
    elif estimate is None:
        sentence = f"{first}; its exact value is <strong>{format_exact(data.log_z_exact)}</strong>."
    else:
        sentence = (
            f"{first}; the exact value is <strong>{format_exact(data.log_z_exact)}</strong>, so the estimate is "
            f"{_distance(estimate, data.log_z_exact)}."
        )
    return f'<p class="headline">{sentence}</p>{_caution(data)}'


def _best_estimate(data: ReportData) -> tuple[_Figure | None, str]:
    """The importance-weighted log Z, else the ELBO, else that of the newest evaluation during training."""
    for key, source in (("log_z", ""), ("elbo", " by the ELBO")):
        figure = _figure(data.results.get(key))
        if figure is not None:
            return figure, source
    for record in reversed(data.metrics):
        for key, source in (("log_z_estimate", ""), ("elbo", " by the ELBO")):
            if _is_finite(record.get(key)):
                return _Figure(float(record[key]), None), f"{source} at step {format_number(record.get('step', 0))}"
    return None, ""


def _distance(estimate: _Figure, exact: float) -> str:
    error = estimate.value - exact
    nats = f"{format_number(abs(error), 2)} nats too {'high' if error > 0 else 'low'}"
    if not estimate.stderr:
        return nats
    return f"{nats}, or {format_number(abs(error) / estimate.stderr, 2)} standard errors"


def _caution(data: ReportData) -> str:
    notes = []
    if not data.finished:
        last = max((record.get("step", 0) for record in data.metrics), default=0)
        notes.append(f"This run has not finished: everything below is its state at step {format_number(last)}.")
    notes += [f"{text[:1].upper()}{text[1:]}." for text in data.cautions]
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def estimates_table(data: ReportData) -> str:
    """Every figure of the results: value ± standard error, the exact value where there is one, and the gap."""
    rows = []
    others = [key for key in data.results if key not in _LABELS and key != "provenance"]
    for key in [*_LABELS, *others]:
        entry = data.results.get(key)
        if key == "forbidden" and not (entry or {}).get("value"):
            continue
        for name, item in _named(_LABELS.get(key, key.replace("_", " ")), entry):
            figure = _figure(item)
            if figure is not None:
                exact = data.log_z_exact if key in ("log_z", "elbo", "eubo") else item.get("exact")
                rows.append(_row(name, figure, exact, is_bound=key in ("elbo", "eubo")))
    if not rows:
        return "<p>No evaluation has been made yet.</p>"
    head = ("Quantity", "Estimate ± standard error", "Exact", "Difference")
    used = 4 if any(row[2] for row in rows) else 2
    return table(head[:used], [row[:used] for row in rows], "figures")


def _named(label: str, entry: Any) -> list[tuple[str, Any]]:
    """A list of figures (such as the shares of the phases) is one row each."""
    if isinstance(entry, list):
        return [(f"{label} {i + 1}", item) for i, item in enumerate(entry)]
    return [(label, entry)]


def _row(name: str, figure: _Figure, exact: int | float | None, is_bound: bool) -> tuple[str, ...]:
    if exact is None or not _is_finite(exact):
        return escape(name), str(figure), "", ""
    gap = figure.value - exact
    sign = "+" if gap > 0 else ""
    difference = sign + format_number(gap, 3)
    if figure.stderr and not is_bound:
        difference += f" ({format_number(abs(gap) / figure.stderr, 2)} standard errors)"
    return escape(name), str(figure), format_exact(float(exact)), difference


def bounds_picture(data: ReportData) -> str:
    """ELBO, estimate and EUBO with their standard errors on one line, and the exact log Z across it."""
    found = [(label, _figure(data.results.get(key))) for key, label in _BOUNDS]
    figures = [(label, figure) for label, figure in found if figure is not None]
    if len(figures) < 2:
        return ""
    exact = [] if data.log_z_exact is None else [data.log_z_exact]
    edges = [*exact, *(f.value + s * (f.stderr or 0.0) for _, f in figures for s in (-1, 1))]
    frame = Frame(70.0, 26.0, 480.0, 28.0 * len(figures), padded_range(min(edges), max(edges), 0.08), (0.0, 1.0))
    parts = [_bar(label, f, frame, 40 + 28.0 * i, COLOURS[i % 4]) for i, (label, f) in enumerate(figures)]
    ticks, step = linear_ticks(*frame.x_range)
    parts += [text(frame.x(t), frame.bottom + 20, format_tick(t, step), anchor="middle") for t in ticks]
    for value in exact:
        x = frame.x(value)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{frame.bottom + 4:g}" stroke="{INK}" stroke-dasharray="5 4"/>'
        )
        parts.append(text(min(max(x, 80.0), 500.0), 14.0, f"exact {format_exact(value)}", anchor="middle", fill=INK))
    return (
        f'<svg class="bounds" viewBox="0 0 580 {frame.bottom + 26:g}" role="img" aria-label="Bounds on log Z">'
        f"{''.join(parts)}</svg>"
    )


_BOUNDS = (("elbo", "ELBO"), ("log_z", "log Z"), ("eubo", "EUBO"))


def _bar(label: str, figure: _Figure, frame: Frame, y: float, colour: str) -> str:
    x, half = frame.x(figure.value), figure.stderr or 0.0
    low, high = frame.x(figure.value - half), frame.x(figure.value + half)
    return (
        f'{text(8.0, y + 4, label, fill=INK, size=13)}<line x1="{frame.left}" x2="{frame.right}" y1="{y}" y2="{y}" '
        f'stroke="var(--rule, #d9dde3)"/><line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
        f'stroke-width="7" stroke-opacity="0.4"/><circle cx="{x:.1f}" cy="{y}" r="4.5" fill="{colour}">'
        f"<title>{escape(figure)}</title></circle>"
    )
