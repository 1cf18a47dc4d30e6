"""Metrics: how far samples of a model are from the truth, each with its error."""

from sabre.metrics.compare import METRICS, Measure, MetricValue, Progress, applicable, compare
from sabre.metrics.energy import EnergyDistance, energies, energy_distance
from sabre.metrics.estimates import Estimate, effective_sample_size, importance_log_z, mean_estimate, share
from sabre.metrics.lattice import correlation, correlation_error, magnetisation, magnetisation_error
from sabre.metrics.mmd import MMD, maximum_mean_discrepancy
from sabre.metrics.points import Points, points
from sabre.metrics.sinkhorn import Sinkhorn, sinkhorn
from sabre.metrics.transport import Transport, optimal_transport

__all__ = [
    "METRICS",
    "MMD",
    "EnergyDistance",
    "Estimate",
    "Measure",
    "MetricValue",
    "Points",
    "Progress",
    "Sinkhorn",
    "Transport",
    "applicable",
    "compare",
    "correlation",
    "correlation_error",
    "effective_sample_size",
    "energies",
    "energy_distance",
    "importance_log_z",
    "magnetisation",
    "magnetisation_error",
    "maximum_mean_discrepancy",
    "mean_estimate",
    "optimal_transport",
    "points",
    "share",
    "sinkhorn",
]
