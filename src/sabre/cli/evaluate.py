"""sabre evaluate: bounds on log Z and effective sample size of a run, beside the truth."""

from collections.abc import Sequence

from sabre.cli.flags import DEVICE, JSON, SCHEDULE, Flag, samples_flag, seed_flag
from sabre.cli.kinds import TRUTH
from sabre.cli.output import clean_stdout, print_json
from sabre.cli.parser import Syntax, parse
from sabre.evaluation import StageDisplay, scores_text
from sabre.run import load

__all__ = ["SUMMARY", "main"]

SUMMARY = "estimate log Z with a trained run, beside the exact value"
_SAMPLES = 4096
_SYNTAX = Syntax(
    "evaluate",
    "ELBO, EUBO, importance-weighted log Z and effective sample size of the newest checkpoint, beside the exact "
    "log Z. The figures are also written to results.json in the run directory.",
    "DIRECTORY",
    "run directory, such as runs/ising",
    (
        samples_flag("samples of the model, and as many true ones", _SAMPLES),
        seed_flag("seed of the samples", "that of the run + 2"),
        SCHEDULE,
        Flag("metrics", TRUTH, "also compare the samples with true ones: transport, Sinkhorn, MMD, ...", default=False),
        JSON,
        DEVICE,
    ),
)


def main(argv: Sequence[str]) -> int:
    values = parse(_SYNTAX, argv)
    metrics = values.get("metrics", False)
    with clean_stdout():
        run = load(values["directory"], device=values.get("device", "auto"))
        run.evaluate(
            values.get("samples", _SAMPLES),
            values.get("seed"),
            values.get("schedule"),
            metrics=metrics,
            progress=StageDisplay() if metrics else None,
        )
    if values.get("json"):
        print_json(run.results)
    else:
        print(scores_text(run.results))
    return 0
