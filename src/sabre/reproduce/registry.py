"""The experiments by name."""

from sabre.errors import UnknownNameError
from sabre.reproduce.ablations import ANNEALING, MCMC, PARTIAL, RATIO, UNMASKING
from sabre.reproduce.experiment import Experiment
from sabre.reproduce.leaps import LEAPS
from sabre.reproduce.tables import ENERGY_EVALUATIONS, TABLE_ISING, TABLE_POTTS, TABLE_SYNTHETIC

__all__ = ["EXPERIMENTS", "make_experiment"]

_ALL = (
    TABLE_ISING,
    TABLE_POTTS,
    TABLE_SYNTHETIC,
    ANNEALING,
    RATIO,
    MCMC,
    UNMASKING,
    PARTIAL,
    ENERGY_EVALUATIONS,
    LEAPS,
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def make_experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise UnknownNameError("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
