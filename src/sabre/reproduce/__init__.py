"""The paper's tables, ablations and figures, made again: each experiment is a set of runs and a page."""

from sabre.reproduce.experiment import SCALES, Cell, Experiment, Scale, parse_seeds
from sabre.reproduce.registry import EXPERIMENTS, make_experiment
from sabre.reproduce.reproduce import reproduce
from sabre.reproduce.work import Chains, Work

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Cell",
    "Chains",
    "Experiment",
    "Scale",
    "Work",
    "make_experiment",
    "parse_seeds",
    "reproduce",
]
