"""sabre sample: states drawn from a trained run, with their importance weights."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sabre.cli.flags import DEVICE, SCHEDULE, Flag, samples_flag, seed_flag
from sabre.cli.kinds import TEXT
from sabre.cli.output import clean_stdout
from sabre.cli.parser import Syntax, parse
from sabre.errors import InvalidArgumentError
from sabre.run import load
from sabre.storage.files import write_atomic

__all__ = ["SUMMARY", "main"]

SUMMARY = "draw samples from a trained run into a file"
_SYNTAX = Syntax(
    "sample",
    "Draw states from the newest checkpoint of a run. The file holds x (n, dim), whole numbers from 0 to C-1, and "
    "log_weight (n): weights proportional to exp(log_weight) make expectations exact for the target.",
    "DIRECTORY",
    "run directory, such as runs/ising",
    (
        samples_flag("number of samples", 1000),
        Flag("out", TEXT, "file to write, such as samples.npz (NumPy)", metavar="FILE"),
        seed_flag("seed of the samples", 0),
        SCHEDULE,
        DEVICE,
    ),
)


def main(argv: Sequence[str]) -> int:
    values = parse(_SYNTAX, argv)
    if "out" not in values:
        raise InvalidArgumentError("sabre sample needs a file for the samples; add --out samples.npz")
    path = Path(values["out"])
    if path.suffix != ".npz" or not path.parent.is_dir() or path.is_dir():
        raise InvalidArgumentError(f"--out is {values['out']!r}; give a file ending in .npz in an existing directory")
    with clean_stdout():
        run = load(values["directory"], device=values.get("device", "auto"))
        x, log_weight = run.sample_with_log_weights(
            values.get("samples", 1000), values.get("seed", 0), values.get("schedule")
        )
    dtype = np.uint8 if run.target.num_categories <= 256 else np.int64
    buffer = io.BytesIO()
    np.savez(buffer, x=x.numpy().astype(dtype), log_weight=log_weight.numpy())
    try:
        write_atomic(path, buffer.getvalue())
    except OSError as error:
        raise InvalidArgumentError(f"cannot write {path}: {error.strerror or error}; choose another --out") from error
    print(f"{len(x)} samples of {run.target!r} in {path}")
    return 0
