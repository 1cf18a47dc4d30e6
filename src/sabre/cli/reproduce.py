"""sabre reproduce: the paper's tables and figures, made again."""

from collections.abc import Sequence

from sabre.cli.flags import DEVICE, Flag
from sabre.cli.kinds import TEXT, TRUTH, WHOLE
from sabre.cli.parser import Syntax, parse
from sabre.reproduce import EXPERIMENTS, SCALES, parse_seeds, reproduce

__all__ = ["SUMMARY", "main"]

SUMMARY = "make a table of the paper again, with its runs, figures and page"
_SYNTAX = Syntax(
    "reproduce",
    "Trains and judges all that a table of the paper needs, or what is missing of it, and writes results/NAME.json, "
    "NAME.md, NAME.html and the figures: ours beside the paper's, beside what true samples reach.",
    "NAME",
    ", ".join(EXPERIMENTS),
    (
        Flag("seeds", TEXT, "seeds of the rows that the table rests on; the others get the first one", default="0"),
        Flag("repeat_all", TRUTH, "every row gets every seed", default=False),
        Flag("scale", TEXT, f"length of the runs: {', '.join(SCALES)}", default="paper"),
        Flag("workers", WHOLE, "runs at the same time, the cores shared out among them", default=1),
        Flag("only", TEXT, "run only the cells whose target or method contains this text"),
        Flag("render", TRUTH, "run nothing, only collect what is there and write the pages", default=False),
        Flag("runs", TEXT, "directory of the run directories", default="runs/reproduce", metavar="DIR"),
        Flag("results", TEXT, "directory of tables and figures", default="results", metavar="DIR"),
        Flag("quiet", TRUTH, "no progress display", default=False),
        DEVICE,
    ),
    "A call that was interrupted is repeated as it was: complete runs are left alone, others go on where they stopped.",
)


def main(argv: Sequence[str]) -> int:
    values = parse(_SYNTAX, argv)
    name, results = values["name"], values.get("results", "results")
    data = reproduce(
        name,
        seeds=parse_seeds(values.get("seeds", "0")),
        scale=values.get("scale", "paper"),
        workers=values.get("workers", 1),
        runs=values.get("runs", "runs/reproduce"),
        results=results,
        only=values.get("only", ""),
        repeat_all=values.get("repeat_all", False),
        device=values.get("device", "auto"),
        run=not values.get("render", False),
        quiet=values.get("quiet", False),
    )
    count = sum(len(row["runs"]) for row in data["rows"])
    print(f"{'runs':<12}{count}\n{'table':<12}{results}/{name}.md, {name}.html\n{'figures':<12}{results}/{name}.json")
    return 0
