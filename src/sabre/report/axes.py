"""Axes of the drawings: ranges, ticks and the frame that maps values to places."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabre.report.markup import escape, format_tick

__all__ = ["Frame", "linear_ticks", "log_ticks", "padded_range", "robust_range", "text"]

INK, MUTED, RULE = "var(--ink, #1c2430)", "var(--muted, #66707e)", "var(--rule, #d9dde3)"


def padded_range(low: float, high: float, share: float = 0.06) -> tuple[float, float]:
    """A little more than [low, high], never empty."""
    span = high - low
    least = 1e-9 * max(abs(low), abs(high))
    if span <= least:
        half = 0.05 * max(abs(low), abs(high)) or 1.0
        return low - half, high + half
    return low - share * span, high + share * span


def robust_range(series: Sequence[Sequence[float]], references: Sequence[float]) -> tuple[float, float]:
    """The range in which a curve lives after its first half, and the reference values.

    The core spans the 2 to 98 per cent quantiles of the second halves and the references. Where all values together
    span no more than four cores nothing is clipped; else half a core is added on either side.
    """
    everything = [*references, *(value for values in series for value in values)]
    if not everything:
        return 0.0, 1.0
    late = [np.quantile(values[len(values) // 2 :], (0.02, 0.98)) for values in series if values]
    core = [*references, *(float(value) for pair in late for value in pair)]
    (low, high), (lowest, highest) = (min(core), max(core)), (min(everything), max(everything))
    if highest - lowest <= 4 * (high - low):
        return padded_range(lowest, highest)
    margin = 0.5 * (high - low) or 0.05 * abs(low) or 1.0
    return padded_range(max(lowest, low - margin), min(highest, high + margin))


def linear_ticks(low: float, high: float, count: int = 5) -> tuple[list[float], float]:
    """About `count` round values in [low, high], and their distance."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(math.log(s / raw)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)], step


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten in [10^low, 10^high], with 2 and 5 between them where there are few."""
    powers = range(max(math.floor(low), -307), min(math.ceil(high), 307) + 1)
    stride = max(1, len(powers) // 6)
    factors = (1, 2, 5) if high - low < 2 else (1,)
    ticks = [f * 10.0**p for p in powers if p % stride == 0 for f in factors]
    return [tick for tick in ticks if low - 1e-9 <= math.log10(tick) <= high + 1e-9]


def text(
    x: float, y: float, content: str, *, anchor: str = "start", size: int = 12, fill: str = MUTED, bold: bool = False
) -> str:
    """An SVG text element; the content is escaped here."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}" fill="{fill}"{weight}>'
        f"{escape(content)}</text>"
    )


@dataclass(frozen=True)
class Frame:
    """The rectangle that data are drawn in. With `log_y`, `y_range` is in powers of ten."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    log_y: bool = False

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * self.width

    def y(self, value: float) -> float:
        low, high = self.y_range
        place = math.log10(value) if self.log_y else value
        return self.bottom - (place - low) / (high - low) * self.height

    def y_ticks(self) -> list[tuple[float, str]]:
        if self.log_y:
            return [(tick, format_tick(tick, min(tick, 1.0))) for tick in log_ticks(*self.y_range)]
        ticks, step = linear_ticks(*self.y_range)
        return [(tick, format_tick(tick, step)) for tick in ticks]

    def rules(self) -> str:
        """Horizontal rules with their values."""
        parts = []
        for tick, label in self.y_ticks():
            y = self.y(tick)
            parts.append(
                f'<line x1="{self.left:.1f}" x2="{self.right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}"/>'
            )
            parts.append(text(self.left - 7, y + 4, label, anchor="end"))
        return "".join(parts)

    def axes(self, x_count: int = 5) -> str:
        """Horizontal rules with their values, and values below."""
        ticks, step = linear_ticks(*self.x_range, x_count)
        below = [text(self.x(t), self.bottom + 17, format_tick(t, step), anchor="middle") for t in ticks]
        return "".join([self.rules(), *below])
