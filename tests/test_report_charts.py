"""Charts, axes and numbers of the report survive every kind of data."""

import math
import re

import pytest
import torch

from pages import Balance
from sabre.report import Bar, Panel, Series, bar_chart, line_chart, scatter_grid
from sabre.report.axes import linear_ticks, log_ticks, robust_range
from sabre.report.markup import format_exact, format_number, format_tick, format_with_error

NAN, INF = float("nan"), float("inf")


def draw(*series: Series, **options) -> str:
    chart = line_chart("title", series, x_label="step", y_label="nats", **options)
    Balance(chart)
    assert not re.search(r"nan|inf\b|None", chart)
    return chart


def points_of(chart: str) -> list[tuple[float, float]]:
    paths = re.findall(r'<path d="([^"]*)"', chart)
    return [tuple(map(float, pair.split())) for path in paths for pair in re.split("[ML]", path) if pair]


AWKWARD = {
    "empty": ([], []),
    "single": ([3], [1.0]),
    "constant": ([0, 1, 2], [5.0, 5.0, 5.0]),
    "zero": ([0, 1], [0.0, 0.0]),
    "all missing": ([0, 1], [None, NAN]),
    "infinite": ([0, 1, 2], [INF, 1.0, -INF]),
    "huge": ([0, 1], [-1e300, 1e300]),
    "tiny": ([0, 1], [1e-300, 2e-300]),
    "close": ([0, 1], [238.647, 238.647 + 1e-13]),
    "negative": ([0, 1, 2], [-3.0, -2.0, -1.0]),
}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("reference", [{}, {"exact": 1.0}, {"nothing": NAN}])
def test_charts_of_awkward_data(name, log_y, reference):
    x, y = AWKWARD[name]
    chart = draw(Series("s", x, y), Series("other", [], []), log_y=log_y, horizontal=reference)
    drawable = [v for v in y if v is not None and math.isfinite(v) and (v > 0 or not log_y)]
    assert ("no data" in chart) == (not drawable)
    assert chart.count("<circle") == len(drawable)


def test_curves_go_through_their_points_and_break_at_gaps():
    chart = draw(Series("s", [0, 10, 20, 30, 40], [0.0, 1.0, None, 1.0, 0.5]), y_range=(0.0, 1.0))
    assert re.search(r'd="([^"]*)"', chart)[1].count("M") == 2
    (x0, y0), (x1, y1), (x3, y3), (x4, y4) = points_of(chart)
    assert y1 == y3 < y0
    assert y4 == pytest.approx((y0 + y1) / 2, abs=0.1)
    assert x1 - x0 == pytest.approx(x4 - x3, abs=0.2)
    assert x3 - x1 == pytest.approx(2 * (x1 - x0), abs=0.31)


def test_an_early_collapse_is_clipped_and_marked():
    steps = list(range(1, 101))
    elbo = [238.6 - 1e6 * math.exp(-s / 3) for s in steps]
    chart = draw(Series("ELBO", steps, elbo), horizontal={"exact": 238.647})
    assert "<polygon" in chart
    ticks = [float(t) for t in re.findall(r'text-anchor="end" font-size="12"[^>]*>([\d.]+)<', chart)]
    assert min(ticks) > 238
    assert "exact 238.64700" in chart
    assert "<polygon" not in draw(Series("calm", steps, [math.sin(s) for s in steps]))
    low, high = robust_range([elbo], [238.647])
    assert 238 < low < 238.6 < 238.647 < high < 239
    assert robust_range([[0.0, 1.0, 0.4, 0.8]], []) == pytest.approx((-0.06, 1.06))


def test_long_series_are_thinned_but_keep_their_extremes():
    values = [math.sin(i) for i in range(30_000)]
    values[7_777] = 50.0
    chart = draw(Series("s", range(30_000), values), y_range=(-60.0, 60.0))
    points = points_of(chart)
    assert len(points) < 2500
    top = min(y for _, y in points)
    assert sum(y == top for _, y in points) == 1
    assert max(y for _, y in points) - top > 80


def test_labels_and_colours_are_escaped():
    chart = draw(Series('<b>"', [0, 1], [0, 1], colour='"/><script>'), horizontal={"<i>": 0.5})
    assert not {"b", "i", "script"} & set(Balance(chart).tags)


def test_ticks_are_round_and_inside():
    for low, high in ((0.0, 1.0), (-3.2, 17.0), (238.1, 238.9), (1e-7, 3e-7), (-5e8, 2e9), (99.99, 100.01)):
        ticks, step = linear_ticks(low, high)
        assert 3 <= len(ticks) <= 9
        assert all(low - 1e-9 * abs(low) <= t <= high + 1e-9 * abs(high) for t in ticks)
        mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
        assert min(abs(mantissa - m) for m in (1, 2, 2.5, 5)) < 1e-6
        assert len({format_tick(t, step) for t in ticks}) == len(ticks)
    assert log_ticks(-2.0, 3.0) == pytest.approx([0.01, 0.1, 1, 10, 100, 1000])
    assert log_ticks(0.0, 1.0) == pytest.approx([1, 2, 5, 10])


def test_numbers_are_written_to_the_precision_they_have():
    assert format_with_error(238.641234, 0.00312) == "238.6412 ± 0.0031"
    assert format_with_error(-1234.5678, 12.3) == "−1,235 ± 12"
    assert format_with_error(0.5, 0.0) == format_with_error(0.5, None) == format_with_error(0.5, INF) == "0.5"
    assert format_number(NAN) == "not a number"
    assert format_number(-INF) == "−∞"
    assert format_number(20000) == "20,000"
    assert format_exact(-1.2e-7) == "0.00000"
    assert [format_tick(t, 0.25) for t in (-0.25, 0.0, 1.5)] == ["−0.25", "0.00", "1.50"]
    assert format_tick(2.0, 1.0) == "2"
    assert format_tick(2.5e12, 5e11) == "2.5e+12"


def test_bars_stand_at_their_ratio_with_their_errors():
    """On a logarithmic axis powers of two are evenly spaced; a bar reaches one error up and down."""
    bars = [Bar(0.5, 1.0, 0.5), Bar(1.0, 2.0, 0.25), Bar(4.0, 3.0, 0.5)]
    page = bar_chart("EUBO", {"TB": bars}, x_label="R", exact=2.5)
    assert "exact 2.50000" in page
    x = [float(value) for value in re.findall(r'<circle cx="([\d.]+)"', page)]
    assert x[2] - x[1] == pytest.approx(2 * (x[1] - x[0]), abs=0.2)
    spans = [(float(low), float(high)) for low, high in re.findall(r'd="M[\d.]+ ([\d.]+)V([\d.]+)M', page)]
    heights = [low - high for low, high in spans]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.3)
    centres = [float(value) for value in re.findall(r'cy="([\d.]+)" r="3"', page)]
    assert [round((low + high) / 2, 1) for low, high in spans] == pytest.approx(centres, abs=0.1)
    assert "no data" in bar_chart("EUBO", {"TB": [Bar(1.0, float("nan"), 1.0)]}, x_label="R")


def test_panels_share_their_scales_and_cut_off_what_is_outside():
    truth, model = torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[0.5, 1.0], [50.0, 50.0]])
    page = scatter_grid([Panel("truth", truth, None), Panel("model", model, truth)], columns=2)
    points = [tuple(map(float, pair)) for pair in re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"', page)]
    middle = [(a + b) / 2 for a, b in zip(*points[:2], strict=True)]
    left = [float(value) for value in re.findall(r'<clipPath id="clip-\d"><rect x="([\d.]+)"', page)]
    assert points[2][0] - left[1] == pytest.approx(middle[0] - left[0], abs=0.2)
    assert points[2][1] == pytest.approx(middle[1], abs=0.2)
    assert page.count("<path d=") == 2
    assert page.count('clip-path="url(#clip-') == 2
