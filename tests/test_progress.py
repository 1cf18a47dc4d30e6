"""What a run shows while it goes, on streams that are no terminal."""

import sabre
from sabre.targets import Ising
from sabre.training import ProgressDisplay

OPTIONS = sabre.Options(
    steps=12, batch_size=16, width=8, depth=1, heads=1, prefill=1, log_interval=2, eval_samples=16, final_samples=0
)


def lines_of(capsys, **options):
    sabre.train(Ising(4, 0.4), options=OPTIONS.replace(options))
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("step ")]


def test_the_first_and_the_last_figures_are_shown_and_those_of_a_batch_until_there_is_an_evaluation(capsys):
    lines = lines_of(capsys, eval_interval=6)
    assert [line.split()[1] for line in lines] == ["2/12", "12/12"]
    names = ["step", "loss", "elbo", "ess", "ETA"]
    assert [word for word in lines[0].split() if word.isalpha()] == [names[0], "beta", *names[1:]]
    assert [word for word in lines[1].split() if word.isalpha()] == names
    assert all("log_z" in line for line in lines)


def test_figures_of_evaluations_take_the_place_of_those_of_batches(capsys):
    with ProgressDisplay(10, 0) as display:
        display.take({"batch_elbo": 1.0, "loss": 3.0})
        display.take({"elbo": 2.0})
        display.take({"batch_elbo": 5.0})
        display.show(10)
    assert capsys.readouterr().err.startswith("step 10/10  loss 3  elbo 2  ETA")


def test_between_the_first_and_the_last_figures_ten_seconds_pass(capsys):
    with ProgressDisplay(3, 0) as display:
        for step in (1, 2, 3):
            display.take({"loss": float(step)})
            display.show(step)
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["1/3", "3/3"]
