"""Frequencies of the categories at every site, as a picture."""

import numpy as np
from jaxtyping import Float
from torch import Tensor

from sabre.report.axes import INK, RULE, text
from sabre.report.markup import escape
from sabre.report.png import png_data_uri

__all__ = ["frequency_map"]

_WIDTH, _LEFT, _TOP = 480.0, 34.0, 28.0
_HUE = (31, 111, 178)


def frequency_map(title: str, frequency: Float[Tensor, "categories dim"]) -> str:
    """Sites to the right, categories upwards; the more opaque, the more frequent."""
    categories, dim = frequency.shape
    image = np.empty((categories, dim, 4), np.uint8)
    image[..., :3] = _HUE
    image[..., 3] = np.rint(255 * frequency.cpu().numpy().clip(0, 1))[::-1]
    width, height = _WIDTH - _LEFT - 6, min(260.0, max(90.0, 22.0 * categories))
    box = f'x="{_LEFT:g}" y="{_TOP:g}" width="{width:g}" height="{height:g}"'
    across = [(_LEFT + (i + 0.5) * width / dim, i) for i in _ticks(dim, 12)]
    upwards = [(_TOP + height - (c + 0.5) * height / categories, c) for c in _ticks(categories, 8)]
    parts = [
        text(_LEFT, 16.0, title, size=13, fill=INK, bold=True),
        f'<image {box} preserveAspectRatio="none" href="{png_data_uri(image)}"/>',
        f'<rect {box} fill="none" stroke="{RULE}"/>',
        *[text(x, _TOP + height + 16, str(i), anchor="middle") for x, i in across],
        *[text(_LEFT - 7, y + 4, str(c), anchor="end") for y, c in upwards],
        text(_WIDTH - 6, 16.0, "category against site", anchor="end", size=11),
    ]
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_TOP + height + 24:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _ticks(count: int, most: int) -> range:
    """At most `most` of 0 .. count-1, at a round distance."""
    for stride in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        if count <= most * stride:
            return range(0, count, stride)
    return range(0, count, -(-count // most))
