"""Charts of points with error bars against a quantity on a logarithmic scale, as inline SVG."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sabre.report.axes import INK, Frame, padded_range, text
from sabre.report.markup import escape, format_exact, format_tick
from sabre.report.svg import COLOURS

__all__ = ["Bar", "bar_chart"]

_WIDTH, _HEIGHT = 480.0, 290.0
_CAP = 4.0


class Bar(NamedTuple):
    """A point and its error, drawn as a bar of one error up and down."""

    x: float
    y: float
    error: float


def bar_chart(
    title: str, lines: Mapping[str, Sequence[Bar]], *, x_label: str, exact: float | None = None, y_label: str = ""
) -> str:
    """One line of points with error bars per label, x on a logarithmic scale; `exact` is a dashed line across."""
    bars = [bar for line in lines.values() for bar in line if math.isfinite(bar.y)]
    edges = [bar.y + sign * bar.error for bar in bars for sign in (-1, 1)] + ([] if exact is None else [exact])
    places = sorted({bar.x for bar in bars})
    if not bars:
        return _page(title, text(_WIDTH / 2, _HEIGHT / 2, "no data", anchor="middle"))
    logs = [math.log2(x) for x in places]
    frame = Frame(
        64.0, 50.0, _WIDTH - 80, _HEIGHT - 90, padded_range(min(logs), max(logs)), padded_range(min(edges), max(edges))
    )
    content = [frame.rules(), *(_x_tick(frame, x) for x in places)]
    if exact is not None:
        content.append(_reference(frame, exact))
    for number, (label, line) in enumerate(lines.items()):
        colour, shift = COLOURS[number % len(COLOURS)], 3.0 * number
        content.append(_line([bar for bar in line if math.isfinite(bar.y)], frame, colour, shift))
        content.append(text(14.0 + 200 * number, 35.0, label, fill=colour, bold=True))
    content.append(text(frame.right, _HEIGHT - 3, x_label, anchor="end"))
    content.append(text(_WIDTH, 15.0, y_label, anchor="end"))
    return _page(title, "".join(content))


def _page(title: str, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
        f'font-family="sans-serif" aria-label="{escape(title)}">'
        f"{text(0.0, 15.0, title, size=14, fill=INK, bold=True)}{content}</svg>"
    )


def _x_tick(frame: Frame, value: float) -> str:
    return text(frame.x(math.log2(value)), frame.bottom + 18, format_tick(value, min(value, 1.0)), anchor="middle")


def _reference(frame: Frame, value: float) -> str:
    y = frame.y(value)
    line = f'<line x1="{frame.left}" x2="{frame.right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{INK}"'
    return f'{line} stroke-dasharray="6 4"/>{text(frame.left + 4, y - 5, f"exact {format_exact(value)}", fill=INK)}'


def _line(bars: Sequence[Bar], frame: Frame, colour: str, shift: float) -> str:
    """The points joined by a line, each with its bar and caps; lines are shifted a little against each other."""
    parts, path = [], []
    for bar in sorted(bars):
        x, y = frame.x(math.log2(bar.x)) + shift, frame.y(bar.y)
        low, high = frame.y(bar.y - bar.error), frame.y(bar.y + bar.error)
        path.append(f"{x:.1f} {y:.1f}")
        parts.append(
            f'<path d="M{x:.1f} {low:.1f}V{high:.1f}M{x - _CAP:.1f} {low:.1f}h{2 * _CAP}M{x - _CAP:.1f} {high:.1f}'
            f'h{2 * _CAP}" stroke="{colour}" fill="none"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
        )
    joined = f'<path d="M{"L".join(path)}" stroke="{colour}" fill="none" stroke-width="1.6"/>' if path else ""
    return joined + "".join(parts)
