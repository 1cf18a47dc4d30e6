"""One call: run what is missing, collect, render."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sabre.errors import InvalidArgumentError, RunDirectoryError
from sabre.reproduce.collect import collect
from sabre.reproduce.experiment import scale_named, works_of
from sabre.reproduce.pictures import Picture, draw
from sabre.reproduce.registry import make_experiment
from sabre.reproduce.render import render_html, render_markdown
from sabre.reproduce.runner import run_missing
from sabre.storage.files import strict_json, write_atomic

__all__ = ["reproduce"]


def reproduce(
    name: str,
    *,
    seeds: Sequence[int] = (0,),
    scale: str = "paper",
    workers: int = 1,
    runs: str | Path = "runs/reproduce",
    results: str | Path = "results",
    only: str = "",
    repeat_all: bool = False,
    device: str = "auto",
    run: bool = True,
    quiet: bool = False,
) -> dict[str, Any]:
    """Make the experiment of that name; returns what results/NAME.json holds.

    Each cell of its tables is a run directory under `runs`, which is gone on with where it was stopped, and left alone
    where it is complete. The rows that the paper's main claims rest on get every seed, the others the first one
    (`repeat_all`: all get every seed). `only` runs the cells whose section or row contains the text; with `run` False
    nothing is run. Collected is all that is complete. Tables, pages and pictures go to `results`.
    """
    if workers < 1:
        raise InvalidArgumentError(f"workers is {workers}; give a whole number of at least 1")
    experiment, size, root, out = make_experiment(name), scale_named(scale), Path(runs), Path(results)
    cells = experiment.cells(size)
    repeated = [cell.row for cell in cells] if repeat_all else experiment.repeated
    works = works_of(cells, seeds, repeated)
    failed: dict[str, str] = {}
    if run:
        chosen = [
            w for cell, ws in zip(cells, works, strict=True) if only in f"{cell.section} | {cell.row}" for w in ws
        ]
        failed = run_missing(root, chosen, workers, device, quiet)
    data = collect(experiment, size, cells, works, root)
    pictures = draw(experiment, cells, works, data, root)
    _write(out, experiment.name, data, pictures)
    for ending, render in (("md", render_markdown), ("html", render_html)):
        write_atomic(out / f"{experiment.name}.{ending}", render(experiment, data, pictures).encode())
    if failed:
        first = next(iter(failed))
        raise RunDirectoryError(
            f"{len(failed)} of the runs of {name} failed, the others are in {out / experiment.name}.md; "
            f"{first}: {failed[first]}"
        )
    return data


def _write(out: Path, name: str, data: dict[str, Any], pictures: Sequence[Picture]) -> None:
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        write_atomic(out / picture.file, picture.data)
    write_atomic(out / f"{name}.json", strict_json(json.loads(json.dumps(data)), indent=1).encode())
