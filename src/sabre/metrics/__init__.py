"""Metrics: how far samples of a model are from the truth, each with its error."""

from sabre.metrics.estimates import Estimate, effective_sample_size, importance_log_z, mean_estimate, share

__all__ = ["Estimate", "effective_sample_size", "importance_log_z", "mean_estimate", "share"]
