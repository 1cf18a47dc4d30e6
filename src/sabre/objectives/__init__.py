"""Objectives: pure functions from log-weights to the coefficients of sum_b c_b grad log p(tau_b)."""

from sabre.objectives.base import Objective, ObjectiveValue, Origin, bounded
from sabre.objectives.continuity import continuity
from sabre.objectives.cross_entropy import cross_entropy
from sabre.objectives.denoising import choose_masks, denoise
from sabre.objectives.gradient import backpropagate, choose_steps, log_likelihood
from sabre.objectives.log_variance import log_variance
from sabre.objectives.reverse_kl import reverse_kl
from sabre.objectives.trajectory_balance import trajectory_balance

__all__ = [
    "OBJECTIVES",
    "Objective",
    "ObjectiveValue",
    "Origin",
    "backpropagate",
    "WEIGHTED",
    "bounded",
    "choose_masks",
    "choose_steps",
    "continuity",
    "cross_entropy",
    "denoise",
    "log_likelihood",
    "log_variance",
    "reverse_kl",
    "trajectory_balance",
]

OBJECTIVES: dict[str, Objective] = {
    "tb": trajectory_balance,
    "lv": log_variance,
    "rkl": reverse_kl,
    "ce": cross_entropy,
    "wdce": cross_entropy,
    "leaps": continuity,
}

WEIGHTED = ("ce", "wdce")
"""Objectives of weighted samples: the weights are those of the law that drew them, whoever learns from them."""
