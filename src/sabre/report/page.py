"""The report of a run: one HTML page that needs nothing else."""

from typing import Any

from sabre.report.beside import metrics_table
from sabre.report.curves import training_curves
from sabre.report.data import ReportData
from sabre.report.figures import bounds_picture, estimates_table, headline
from sabre.report.markup import escape, table
from sabre.report.pictures import sample_pictures
from sabre.report.style import STYLE

__all__ = ["render_report"]


def render_report(report: ReportData) -> str:
    """The page: headline, estimates, curves, samples, then options and provenance."""
    curves = training_curves(report)
    sections = [
        _section("Estimates", estimates_table(report) + bounds_picture(report)),
        *([_section("Beside true samples", beside)] if (beside := metrics_table(report)) else []),
        _section("Training", f'<div class="grid">{"".join(curves)}</div>' if curves else "<p>No records yet.</p>"),
        _section("Samples", sample_pictures(report)),
        _section("How it was made", _closing(report)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main>{_header(report)}{headline(report)}{''.join(sections)}</main></body></html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>\n"


def _header(report: ReportData) -> str:
    state = "finished run" if report.finished else "unfinished run"
    facts = (("target", report.target), ("method", report.method), ("network", report.net))
    items = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    title = f'<p class="eyebrow">sabre · {state}</p><h1>{escape(report.title)}</h1>'
    return f'<header>{title}<dl class="facts">{items}</dl></header>'


def _closing(report: ReportData) -> str:
    """Options on one side, provenance and what else the results hold on the other."""
    results = report.results
    rest = results.get("provenance", {}) | {
        key: value for key, value in results.items() if isinstance(value, int | float | str)
    }
    if "evaluated" in results:
        rest["evaluated"] = {key: results["evaluated"].get(key) for key in ("seed", "schedule", "command", "date")}
    parts = [
        f"<div><h3>{title}</h3>{table((), _flat(values), 'options')}</div>"
        for title, values in (("Options", report.config), ("Provenance", rest))
        if values
    ]
    return f'<div class="columns">{"".join(parts)}</div>'


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """One row per value, nested names and places in lists joined by dots."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, list):
            rows += _flat({f"{key}.{number}": item for number, item in enumerate(value, 1)}, prefix)
        elif isinstance(value, dict):
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((escape(f"{prefix}{key}"), escape("none" if value is None else value)))
    return rows
