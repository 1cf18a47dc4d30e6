"""The figures of the paper, to stand beside ours."""

import functools
import importlib.resources
import json
from typing import Any

__all__ = ["paper_figures", "paper_row", "paper_tables"]


@functools.cache
def paper_tables() -> dict[str, Any]:
    """The tables of the paper: figures as {"mean": ..., "std": ...} over its five runs."""
    file = importlib.resources.files("sabre.reproduce") / "data" / "paper_tables.json"
    tables: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return tables


def paper_figures(table: str, row: str, column: str) -> dict[str, Any]:
    """The figures of one cell; nothing where the paper has none."""
    found: dict[str, Any] = paper_tables()[table].get(row, {}).get(column, {})
    return {metric: figure for metric, figure in found.items() if figure is not None}


def paper_row(table: str, method: str, key: str, value: float) -> dict[str, Any]:
    """The figures of the row of a table that is a list of rows: of this method, and of this value under `key`."""
    for row in paper_tables()[table]:
        if (row["method"], row[key]) == (method, value):
            return {name: figure for name, figure in row.items() if isinstance(figure, dict)}
    return {}
