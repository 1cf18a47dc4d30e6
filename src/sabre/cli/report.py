"""sabre report: the HTML page of a run."""

from collections.abc import Sequence

from sabre.cli.flags import DEVICE
from sabre.cli.output import clean_stdout
from sabre.cli.parser import Syntax, parse
from sabre.run import load
from sabre.storage import RunDirectory

__all__ = ["SUMMARY", "main"]

SUMMARY = "write the HTML report of a run"
_SYNTAX = Syntax(
    "report",
    "Write report.html into the run directory: estimates beside the truth, training curves, samples. The figures are "
    "those of the newest evaluation.",
    "DIRECTORY",
    "run directory, such as runs/ising",
    (DEVICE,),
)


def main(argv: Sequence[str]) -> int:
    values = parse(_SYNTAX, argv)
    with clean_stdout():
        load(values["directory"], device=values.get("device", "auto")).report()
    print(RunDirectory(values["directory"]).report_path)
    return 0
