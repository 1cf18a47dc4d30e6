"""The table of an experiment as Markdown and as an HTML page, from its collected figures alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from sabre.report import STYLE, escape, table
from sabre.reproduce.experiment import Experiment
from sabre.reproduce.pictures import Picture
from sabre.reproduce.sheet import AGREES, BETTER, LABELS, WORSE, Entry, Sheet, sheets, tally

__all__ = ["render_html", "render_markdown"]

_MARKS = {AGREES: "=", BETTER: "+", WORSE: "-", "": ""}
_LEGEND = (
    "Our figure, its error (the standard deviation over seeds where there are several, else the standard error of "
    "one run), and below it the paper's with its standard deviation over five runs: = within two of the paper's "
    "standard deviations, + better, - worse. The last row of a table is what independent true samples reach. "
    "Transport is exact; a star marks Sinkhorn costs that 100 iterations leave far from converged, as in the paper. "
    "W1 is the Wasserstein distance of the energies in nats, TV the total variation of their histograms."
)


def render_markdown(experiment: Experiment, data: Mapping[str, Any], pictures: Sequence[Picture]) -> str:
    """The page for results/: heading, tables, pictures as links to files beside it."""
    found = sheets(data)
    lines = [f"# {experiment.title}", "", experiment.about, "", _how(data), "", _LEGEND, ""]
    lines += [sentence, ""] if (sentence := tally(found)) else []
    for sheet in found:
        lines += [f"## {sheet.title}", "", f"`{sheet.facts}`", "", *_markdown_table(sheet), ""]
    for picture in pictures:
        lines += [f"![{picture.caption}]({picture.file})", "", picture.caption, ""]
    return "\n".join(lines).rstrip() + "\n"


def _how(data: Mapping[str, Any]) -> str:
    seeds = sorted({run["results"]["provenance"]["seed"] for row in data["rows"] for run in row["runs"]})
    count = sum(len(row["runs"]) for row in data["rows"])
    return (
        f"Scale `{data['scale']}`, {data['num_samples']} samples, {count} runs, seeds {', '.join(map(str, seeds))}. "
        f"Made by `sabre reproduce {data['experiment']}`; figures and provenance in "
        f"[{data['experiment']}.json]({data['experiment']}.json)."
    )


def _markdown_table(sheet: Sheet) -> list[str]:
    head = ["method", *(LABELS[name] for name in sheet.metrics)]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for label, entries in sheet.rows:
        lines.append(f"| {' | '.join([label, *map(_markdown_cell, entries)])} |")
    return lines


def _markdown_cell(entry: Entry) -> str:
    if not entry.paper:
        return entry.ours
    return f"{entry.ours}<br>{entry.paper} {_MARKS[entry.verdict]}".rstrip()


def render_html(experiment: Experiment, data: Mapping[str, Any], pictures: Sequence[Picture]) -> str:
    """One self-contained page in the style of the reports."""
    found = sheets(data)
    body = [
        f'<header><p class="eyebrow">sabre · reproduced</p><h1>{escape(experiment.title)}</h1>',
        f"<p>{escape(experiment.about)}</p></header>",
        f'<p class="caption">{escape(_LEGEND)}</p><p>{escape(tally(found))}</p>',
    ]
    for sheet in found:
        head = ("method", *(escape(LABELS[name]) for name in sheet.metrics))
        rows = [(escape(label), *map(_html_cell, entries)) for label, entries in sheet.rows]
        facts = f'<p class="caption"><code>{escape(sheet.facts)}</code></p>'
        body.append(f"<section><h2>{escape(sheet.title)}</h2>{facts}{table(head, rows, 'figures')}</section>")
    body += [f"<figure><figcaption>{escape(p.caption)}</figcaption>{p.html}</figure>" for p in pictures]
    title = escape(experiment.title)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}\n{_EXTRA}</style></head>\n"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


_EXTRA = (
    "main { max-width: 90rem; } .paper { color: var(--muted); font-size: 0.85em; } "
    ".better { color: var(--series-3); } .worse { color: var(--series-2); } figure { margin: 2rem 0; }"
)


def _html_cell(entry: Entry) -> str:
    if not entry.paper:
        return escape(entry.ours)
    mark = f' <span class="{entry.verdict}">{_MARKS[entry.verdict]}</span>' if entry.verdict else ""
    return f'{escape(entry.ours)}<br><span class="paper">{escape(entry.paper)}</span>{mark}'
