"""Evaluation: estimates with errors, beside the truth."""

from sabre.evaluation.comparison import compare_with_truth, prepare_truth
from sabre.evaluation.display import StageDisplay
from sabre.evaluation.samplers import JumpSampler, MaskedSampler, WeightedSampler
from sabre.evaluation.scores import Scores, evaluate
from sabre.evaluation.text import cautions, scores_text
from sabre.evaluation.truth import TrueSamples, has_cluster_moves, true_samples
from sabre.metrics.estimates import Estimate, effective_sample_size, importance_log_z, mean_estimate

__all__ = [
    "Estimate",
    "JumpSampler",
    "MaskedSampler",
    "Scores",
    "StageDisplay",
    "TrueSamples",
    "WeightedSampler",
    "cautions",
    "compare_with_truth",
    "effective_sample_size",
    "evaluate",
    "has_cluster_moves",
    "importance_log_z",
    "mean_estimate",
    "prepare_truth",
    "scores_text",
    "true_samples",
]
