"""sabre: neural samplers for discrete densities that you can only evaluate, with the truth beside every estimate."""

from sabre import mcmc, presets, targets
from sabre.errors import SabreError
from sabre.evaluation import Estimate, Scores
from sabre.options import Options
from sabre.run import Run, load
from sabre.targets import Target
from sabre.train import resume, train

__all__ = [
    "Estimate",
    "Options",
    "Run",
    "SabreError",
    "Scores",
    "Target",
    "load",
    "mcmc",
    "presets",
    "resume",
    "targets",
    "train",
]
