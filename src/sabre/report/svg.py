"""Line charts as inline SVG, in colours that the page may set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sabre.report.axes import INK, Frame, padded_range, robust_range, text
from sabre.report.markup import escape, format_exact

__all__ = ["COLOURS", "Series", "line_chart"]

COLOURS = (
    "var(--series-1, #1f6fb2)",
    "var(--series-2, #d1662b)",
    "var(--series-3, #2f8f6b)",
    "var(--series-4, #8660a8)",
)
_WIDTH, _HEIGHT = 480.0, 290.0
_MARKERS_UP_TO = 40
_Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A curve. Where y is None or not finite the line is interrupted; a faint one stays in the background."""

    label: str
    x: Sequence[int | float]
    y: Sequence[int | float | None]
    colour: str | None = None
    dashed: bool = False
    faint: bool = False


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    horizontal: Mapping[str, int | float] | None = None,
    log_y: bool = False,
    y_range: tuple[float, float] | None = None,
) -> str:
    """Draw the series, and a labelled dashed line for every `horizontal` value.

    Without `y_range` a linear axis is where the curves are in their second half, and arrows mark what is off it.
    """
    segments = [_segments(one, log_y) for one in series]
    references = {k: v for k, v in (horizontal or {}).items() if math.isfinite(v) and (v > 0 or not log_y)}
    colours = [one.colour or COLOURS[i % len(COLOURS)] for i, one in enumerate(series)]
    frame = _frame(segments, list(references.values()), log_y, y_range)
    drawn = list(zip(series, segments, colours, strict=True))
    points = [point for parts in segments for part in parts for point in part]
    content = [
        text(0.0, 15.0, title, size=14, fill=INK, bold=True),
        _legend(series, colours),
        frame.axes(),
        text(frame.right, _HEIGHT - 3, x_label, anchor="end"),
        text(_WIDTH, 15.0, y_label, anchor="end"),
        *[_inside(frame, _curve(one, parts, colour, frame)) for one, parts, colour in drawn],
        *[_reference(label, value, frame) for label, value in references.items()],
        _clip_marks(drawn, frame),
        "" if points else text(frame.left + frame.width / 2, frame.top + frame.height / 2, "no data", anchor="middle"),
    ]
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(content)}</svg>"
    )


def _segments(series: Series, log_y: bool) -> list[_Points]:
    """Runs of consecutive drawable points."""
    runs: list[_Points] = [[]]
    for x, y in zip(series.x, series.y, strict=True):
        if y is not None and math.isfinite(x) and math.isfinite(y) and (y > 0 or not log_y):
            runs[-1].append((float(x), float(y)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _frame(
    segments: list[list[_Points]], references: list[float], log_y: bool, y_range: tuple[float, float] | None
) -> Frame:
    xs = [x for parts in segments for part in parts for x, _ in part]
    x_range = (min(xs), max(xs)) if xs else (0.0, 1.0)
    if x_range[0] == x_range[1]:
        x_range = padded_range(*x_range)
    scale = math.log10 if log_y else float
    values = [[scale(y) for part in parts for _, y in part] for parts in segments]
    everything = [v for part in values for v in part]
    if log_y and everything:
        low, high = padded_range(min(everything), max(everything))
    else:
        low, high = robust_range(values, [scale(v) for v in references])
    if y_range is not None:
        low, high = padded_range(scale(y_range[0]), scale(y_range[1]), 0.0)
    top, bottom = 50.0, _HEIGHT - 36
    widest = max(
        (len(label) for _, label in Frame(0.0, 0.0, 1.0, 1.0, x_range, (low, high), log_y).y_ticks()), default=1
    )
    left = 10 + 7.0 * widest
    return Frame(left, top, _WIDTH - left - 22, bottom - top, x_range, (low, high), log_y)


def _inside(frame: Frame, content: str) -> str:
    """A viewport of the size of the frame and half a marker, which cuts off what is outside."""
    sides = (frame.left - 3, frame.top - 3, frame.width + 6, frame.height + 6)
    x, y, width, height = (f"{side:.1f}" for side in sides)
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<svg {place} viewBox="{x} {y} {width} {height}">{content}</svg>'


def _curve(series: Series, segments: list[_Points], colour: str, frame: Frame) -> str:
    count = sum(map(len, segments))
    path, dots = [], []
    for segment in segments:
        places = _thin([(frame.x(x), _limited(frame.y(y), frame)) for x, y in segment])
        if len(places) > 1:
            path.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places))
        if count <= _MARKERS_UP_TO or len(places) == 1:
            dots += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{escape(colour)}"/>' for x, y in places]
    dash = ' stroke-dasharray="5 4"' if series.dashed else ""
    look = 'stroke-width="1" stroke-opacity="0.35"' if series.faint else 'stroke-width="1.8"'
    line = f'<path d="{"".join(path)}" fill="none" stroke="{escape(colour)}" {look}{dash} stroke-linejoin="round"/>'
    return (line if path else "") + "".join(dots)


def _limited(y: float, frame: Frame) -> float:
    """Far outside the frame is as good as outside, and keeps numbers short."""
    return min(max(y, frame.top - 20 * frame.height), frame.bottom + 20 * frame.height)


def _thin(places: _Points) -> _Points:
    """First, lowest, highest and last point of each column of pixels: the same picture from fewer points."""
    if len(places) <= 2 * _WIDTH:
        return places
    columns: dict[int, _Points] = {}
    for place in places:
        columns.setdefault(int(place[0]), []).append(place)
    kept: _Points = []
    for column in columns.values():
        ys = [y for _, y in column]
        chosen = {0, ys.index(min(ys)), ys.index(max(ys)), len(ys) - 1}
        kept += [column[i] for i in sorted(chosen)]
    return kept


def _reference(label: str, value: float, frame: Frame) -> str:
    y = frame.y(value)
    if not frame.top <= y <= frame.bottom:
        return ""
    above = y - 5 if y - frame.top > 16 else y + 14
    return (
        f'<line x1="{frame.left:.1f}" x2="{frame.right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{INK}" '
        f'stroke-dasharray="6 4" stroke-width="1.2"/>'
        f'<g class="halo">{text(frame.left + 4, above, f"{label} {format_exact(value)}", fill=INK)}</g>'
    )


def _legend(series: Sequence[Series], colours: Sequence[str]) -> str:
    parts, x = [], 0.0
    for one, colour in zip(series, colours, strict=True):
        if not one.label:
            continue
        look = (' stroke-dasharray="5 4"' if one.dashed else "") + (' stroke-opacity="0.45"' if one.faint else "")
        line = f'x1="{x:.1f}" x2="{x + 18:.1f}" y1="31" y2="31" stroke="{escape(colour)}" stroke-width="2.5"{look}'
        parts.append(f"<line {line}/>")
        parts.append(text(x + 23, 35.0, one.label))
        x += 40 + 6.6 * len(one.label)
    return "".join(parts)


def _clip_marks(drawn: Sequence[tuple[Series, list[_Points], str]], frame: Frame) -> str:
    """A small arrow at the edge for every few pixels of a curve that runs off the axis."""
    marks = {}
    for _, segments, colour in drawn:
        for x, y in (point for segment in segments for point in segment):
            above = frame.y(y) < frame.top - 1
            if above or frame.y(y) > frame.bottom + 1:
                marks[(int(frame.x(x) // 9), above, colour)] = frame.x(x)
    arrows = []
    for (_, above, colour), x in marks.items():
        tip, base = (frame.top + 1, frame.top + 7) if above else (frame.bottom - 1, frame.bottom - 7)
        corners = f"{x:.1f},{tip:.1f} {x - 3.5:.1f},{base:.1f} {x + 3.5:.1f},{base:.1f}"
        arrows.append(f'<polygon points="{corners}" fill="{escape(colour)}"><title>off the axis</title></polygon>')
    return "".join(arrows)
