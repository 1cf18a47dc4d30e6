"""The figures of the paper that belong to a table: sample grids, scatter plots on the modes, error bars against R."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.evaluation import true_samples
from sabre.report import Bar, Panel, bar_chart, encode_png, lattice_grid, png_data_uri, scatter_grid
from sabre.reproduce.ablations import RATIOS
from sabre.reproduce.execute import samples_of
from sabre.reproduce.experiment import Cell, Experiment
from sabre.reproduce.work import Work
from sabre.targets import GMM40, AbstractTarget

__all__ = ["Picture", "draw"]

_TILES = 16
_POINTS = 1000
_TRUTH_SEED = 0
_RATIO_METRICS = ("elbo", "eubo", "transport")


class Picture(NamedTuple):
    """A figure: its file beside the table, the bytes of it, what it shows, and the same inside a page."""

    file: str
    data: bytes
    caption: str
    html: str


def draw(
    experiment: Experiment,
    cells: Sequence[Cell],
    works: Sequence[Sequence[Work]],
    data: dict[str, Any],
    root: Path,
) -> list[Picture]:
    """The pictures of an experiment, from the samples that its runs have left."""
    if experiment.pictures == "ratio":
        return _ratio(experiment, data)
    sections: dict[str, list[tuple[str, AbstractTarget, Tensor]]] = {}
    for cell, seeds in zip(cells, works, strict=True):
        x = samples_of(root, seeds[0])
        if x is not None and (not experiment.pictured or cell.section in experiment.pictured):
            sections.setdefault(cell.section, []).append((cell.row, cell.work.target, x))
    kind = {"lattices": _lattices, "scatter": _scatter}.get(experiment.pictures)
    if kind is None:
        return []
    return [kind(experiment.name, section, parts) for section, parts in sections.items()]


def _truth(target: AbstractTarget, n: int) -> list[tuple[str, Tensor]]:
    truth = true_samples(target, n, _TRUTH_SEED)
    return [] if truth is None else [("ground truth", truth.x)]


def _lattices(name: str, section: str, parts: list[tuple[str, AbstractTarget, Tensor]]) -> Picture:
    """A block of lattices per method, the truth first."""
    target = parts[0][1]
    blocks = [*_truth(target, _TILES), *((row, x) for row, _, x in parts)]
    size = target.layout.shape
    images = [
        (label, lattice_grid(_spread(x).reshape(-1, *size), target.num_categories, columns=4)) for label, x in blocks
    ]
    html = "".join(
        f'<figure><figcaption>{label}</figcaption><img class="lattices" src="{png_data_uri(image)}" alt="{label}">'
        "</figure>"
        for label, image in images
    )
    rows = torch.cat([_spread(x).reshape(-1, *size) for _, x in blocks])
    image = lattice_grid(rows, target.num_categories, columns=_TILES, tile=48)
    caption = f"{section}. Sixteen samples a row: {'; '.join(label for label, _ in blocks)}."
    return Picture(_file(name, section, "png"), encode_png(image), caption, f'<div class="grid">{html}</div>')


def _spread(x: Int[Tensor, "n dim"]) -> Int[Tensor, "tiles dim"]:
    """Sixteen of the samples, far apart from each other."""
    return x[:: max(1, len(x) // _TILES)][:_TILES]


def _scatter(name: str, section: str, parts: list[tuple[str, AbstractTarget, Tensor]]) -> Picture:
    """The first two continuous coordinates of each method's samples, with the modes of a mixture."""
    target = parts[0][1]
    modes = target.means[:, :2].double() if isinstance(target, GMM40) else None
    clouds = [*_truth(target, _POINTS), *((row, x) for row, _, x in parts)]
    panels = [Panel(label, _plane(target, x), modes) for label, x in clouds]
    svg = scatter_grid(panels, columns=3)
    crosses = " Crosses: the modes." if modes is not None else ""
    caption = f"{section}: the first two coordinates of {_POINTS} samples.{crosses}"
    return Picture(_file(name, section, "svg"), svg.encode(), caption, svg)


def _plane(target: AbstractTarget, x: Int[Tensor, "n dim"]) -> Float[Tensor, "n 2"]:
    points = target.decode(x[:_POINTS])
    assert points is not None
    return points[:, :2].double()


def _ratio(experiment: Experiment, data: dict[str, Any]) -> list[Picture]:
    """Each metric against R, a chart per target and metric."""
    pictures = []
    for section in dict.fromkeys(row["section"] for row in data["rows"]):
        rows = [row for row in data["rows"] if row["section"] == section]
        for metric in _RATIO_METRICS:
            lines: dict[str, list[Bar]] = {}
            for row in rows:
                method, _, ratio = row["row"].partition(", R = ")
                figure = row["figures"].get(metric)
                if figure is not None and float(ratio) in RATIOS:
                    error = figure["stderr"] if figure["std"] is None else figure["std"]
                    lines.setdefault(method, []).append(Bar(float(ratio), figure["value"], error))
            if not lines:
                continue
            exact = rows[0]["log_z_exact"] if metric != "transport" else None
            svg = bar_chart(f"{section}: {metric}", lines, x_label="R", exact=exact)
            caption = f"{section}: {metric} against the ratio R of off-policy to on-policy steps."
            pictures.append(Picture(_file(experiment.name, f"{section}-{metric}", "svg"), svg.encode(), caption, svg))
    return pictures


def _file(name: str, section: str, ending: str) -> str:
    """A short name of letters, digits, dots and dashes."""
    words = section.replace(" x ", "x").replace("=", "")
    return f"figures/{name}-{re.sub(r'[^a-zA-Z0-9.]+', '-', words)}.{ending}"
