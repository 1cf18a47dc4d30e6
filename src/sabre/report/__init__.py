"""The report of a run: one self-contained HTML page with estimates beside the truth, curves and pictures."""

from sabre.report.bars import Bar, bar_chart
from sabre.report.clouds import Panel, scatter_grid
from sabre.report.data import ReportData
from sabre.report.markup import escape, format_number, format_with_error, table
from sabre.report.page import render_report
from sabre.report.png import encode_png, lattice_grid, png_data_uri
from sabre.report.scatter import scatter_panels
from sabre.report.style import STYLE
from sabre.report.svg import Series, line_chart

__all__ = [
    "Bar",
    "Panel",
    "ReportData",
    "STYLE",
    "Series",
    "bar_chart",
    "encode_png",
    "escape",
    "format_number",
    "format_with_error",
    "lattice_grid",
    "line_chart",
    "png_data_uri",
    "render_report",
    "scatter_grid",
    "scatter_panels",
    "table",
]
