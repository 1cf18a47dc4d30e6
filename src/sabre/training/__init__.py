"""Training: Algorithm 1, where its trajectories come from, and the one loop around it."""

from sabre.training.algorithm import algorithm_1, prefill
from sabre.training.builder import build_plan, build_sampler, make_schedule
from sabre.training.experience import Experience, ExperiencePlan
from sabre.training.learner import Learner, Trajectories
from sabre.training.loop import TrainingLoop
from sabre.training.progress import ProgressDisplay
from sabre.training.replay import ReplayBuffer
from sabre.training.state import TrainingState

__all__ = [
    "Experience",
    "ExperiencePlan",
    "Learner",
    "ProgressDisplay",
    "ReplayBuffer",
    "TrainingLoop",
    "TrainingState",
    "Trajectories",
    "algorithm_1",
    "build_plan",
    "build_sampler",
    "make_schedule",
    "prefill",
]
