"""Scatter plots of points in pairs of their axes, as inline SVG."""

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.report.axes import INK, RULE, Frame, padded_range, text
from sabre.report.markup import escape
from sabre.report.svg import COLOURS

__all__ = ["scatter_panels"]

_SIZE, _MARGIN = 420.0, 44.0
_MOST_POINTS = 2000


def scatter_panels(
    model: Float[Tensor, "n axes"], true: Float[Tensor, "m axes"] | None, truth_label: str, most_pairs: int = 2
) -> list[str]:
    """Panels (model, truth) for the axes (0, 1), then (2, 3): the two panels of a pair have the same scales."""
    if model.shape[1] < 2:
        model, true = _on_a_line(model), None if true is None else _on_a_line(true)
    panels = []
    for first in range(0, min(model.shape[1] - 1, 2 * most_pairs), 2):
        clouds = [("Model", model), *([] if true is None else [(truth_label, true)])]
        pairs = [(label, _drawable(points[:, first : first + 2])) for label, points in clouds]
        ranges = _ranges([points for _, points in pairs])
        names = (f"axis {first + 1}", f"axis {first + 2}")
        panels += [
            _panel(label, points, ranges, names, colour)
            for (label, points), colour in zip(pairs, (COLOURS[0], COLOURS[2]), strict=False)
        ]
    return panels


def _on_a_line(points: Float[Tensor, "n one"]) -> Float[Tensor, "n 2"]:
    """One axis only: spread the points evenly over a second one, in their order."""
    place = torch.linspace(0, 1, len(points), dtype=points.dtype, device=points.device)
    return torch.stack([points[:, 0], place], 1)


def _drawable(points: Float[Tensor, "n 2"]) -> list[tuple[float, float]]:
    finite = points[points.isfinite().all(1)]
    stride = max(1, -(-len(finite) // _MOST_POINTS))
    return [(float(x), float(y)) for x, y in finite[::stride].tolist()]


def _ranges(clouds: list[list[tuple[float, float]]]) -> tuple[tuple[float, float], tuple[float, float]]:
    points = [point for cloud in clouds for point in cloud] or [(0.0, 0.0)]
    xs, ys = zip(*points, strict=True)
    return padded_range(min(xs), max(xs)), padded_range(min(ys), max(ys))


def _panel(
    label: str,
    points: list[tuple[float, float]],
    ranges: tuple[tuple[float, float], tuple[float, float]],
    names: tuple[str, str],
    colour: str,
) -> str:
    inner = _SIZE - _MARGIN - 12
    frame = Frame(_MARGIN, 26.0, inner, inner, *ranges)
    dots = "".join(f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="2"/>' for x, y in points)
    box = f'x="{frame.left}" y="{frame.top}" width="{inner}" height="{inner}"'
    return (
        f'<svg class="panel" viewBox="0 0 {_SIZE:g} {frame.bottom + 36:g}" role="img" aria-label="{escape(label)}">'
        f"{text(frame.left, 16.0, label, size=13, fill=INK, bold=True)}"
        f"{text(frame.right, 16.0, f'{names[1]} against {names[0]}', anchor='end', size=11)}{frame.axes(4)}"
        f'<rect {box} fill="none" stroke="{RULE}"/><g fill="{colour}" fill-opacity="0.45">{dots}</g></svg>'
    )
