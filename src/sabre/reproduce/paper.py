"""The figures of the paper, to stand beside ours."""

import functools
import importlib.resources
import json
from typing import Any

__all__ = ["paper_figures", "paper_rows", "paper_tables"]


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


def paper_rows(table: str, **where: Any) -> dict[str, Any]:
    """The figures of a row of a table that is a list of rows."""
    for row in paper_tables()[table]:
        if all(row[key] == value for key, value in where.items()):
            return {name: figure for name, figure in row.items() if isinstance(figure, dict)}
    return {}
