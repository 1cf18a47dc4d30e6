"""The report of a run: one self-contained HTML page with estimates beside the truth, curves and pictures."""

from sabre.report.data import ReportData
from sabre.report.page import render_report
from sabre.report.png import lattice_grid, png_data_uri
from sabre.report.scatter import scatter_panels
from sabre.report.svg import Series, line_chart

__all__ = ["ReportData", "Series", "lattice_grid", "line_chart", "png_data_uri", "render_report", "scatter_panels"]
