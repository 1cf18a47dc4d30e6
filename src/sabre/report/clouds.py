"""Scatter plots of several samples side by side on the same scales, as one SVG."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.report.axes import INK, RULE, Frame, padded_range, text
from sabre.report.markup import escape
from sabre.report.svg import COLOURS

__all__ = ["Panel", "scatter_grid"]

_SIDE, _GAP, _HEAD = 230.0, 14.0, 22.0


class Panel(NamedTuple):
    """Points in the plane, and marks to compare them with (such as the modes of a mixture)."""

    label: str
    points: Float[Tensor, "n 2"]
    marks: Float[Tensor, "m 2"] | None


def scatter_grid(panels: Sequence[Panel], columns: int) -> str:
    """The panels in rows of `columns`, all on the scales of the first one."""
    rows = -(-len(panels) // columns)
    width, height = columns * (_SIDE + _GAP) - _GAP, rows * (_SIDE + _HEAD + _GAP) - _GAP
    first = panels[0]
    extent = first.points if first.marks is None else torch.cat([first.points, first.marks])
    low, high = extent.amin(0).tolist(), extent.amax(0).tolist()
    ranges = padded_range(low[0], high[0]), padded_range(low[1], high[1])
    drawn = []
    for number, panel in enumerate(panels):
        left, top = (number % columns) * (_SIDE + _GAP), (number // columns) * (_SIDE + _HEAD + _GAP)
        frame = Frame(left, top + _HEAD, _SIDE, _SIDE, *ranges)
        drawn.append(_panel(panel, frame, COLOURS[2] if number == 0 else COLOURS[0], f"clip-{number}"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="panel" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'font-family="sans-serif" aria-label="samples">{"".join(drawn)}</svg>'
    )


def _panel(panel: Panel, frame: Frame, colour: str, clip: str) -> str:
    dots = "".join(f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="1.3"/>' for x, y in panel.points.tolist())
    crosses = "".join(
        f'<path d="M{frame.x(x) - 3:.1f} {frame.y(y) - 3:.1f}l6 6m0 -6l-6 6"/>'
        for x, y in ([] if panel.marks is None else panel.marks.tolist())
    )
    box = f'x="{frame.left:g}" y="{frame.top:g}" width="{frame.width:g}" height="{frame.height:g}"'
    return (
        f"{text(frame.left, frame.top - 7, panel.label, fill=INK, size=13, bold=True)}"
        f'<clipPath id="{escape(clip)}"><rect {box}/></clipPath><g clip-path="url(#{escape(clip)})">'
        f'<g stroke="{INK}" stroke-opacity="0.55">{crosses}</g>'
        f'<g fill="{colour}" fill-opacity="0.5">{dots}</g></g><rect {box} fill="none" stroke="{RULE}"/>'
    )
