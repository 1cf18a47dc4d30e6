"""Evaluation: estimates with errors, beside the truth."""

from sabre.evaluation.scores import Scores, backward_log_weights, cautions, evaluate, sample_weighted
from sabre.evaluation.truth import TrueSamples, has_cluster_moves, true_samples
from sabre.metrics.estimates import Estimate, effective_sample_size, importance_log_z, mean_estimate

__all__ = [
    "Estimate",
    "Scores",
    "TrueSamples",
    "backward_log_weights",
    "cautions",
    "effective_sample_size",
    "evaluate",
    "has_cluster_moves",
    "importance_log_z",
    "mean_estimate",
    "sample_weighted",
    "true_samples",
]
