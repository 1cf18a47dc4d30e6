"""Estimates: formulas against direct ones, and errors that cover."""

import math

import torch

from sabre.evaluation import effective_sample_size, importance_log_z, mean_estimate
from sabre.metrics.estimates import share
from sabre.noise import Noise


def test_formulas_by_hand():
    w = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    assert math.isclose(importance_log_z(w.log()).value, math.log(8 / 3))
    assert math.isclose(effective_sample_size(w.log()).value, 64 / 3 / 30)
    estimate = mean_estimate(w)
    assert math.isclose(estimate.value, 8 / 3)
    assert math.isclose(estimate.stderr, float(w.std()) / math.sqrt(3))
    assert share(3, 12).value == 0.25


def test_large_log_weights_do_not_overflow_and_shift_log_z_only():
    lw = torch.tensor([0.0, 0.5, -1.0], dtype=torch.float64)
    for shift in (5000.0, -5000.0):
        assert math.isclose(importance_log_z(lw + shift).value, importance_log_z(lw).value + shift)
        assert math.isclose(effective_sample_size(lw + shift).value, effective_sample_size(lw).value, rel_tol=1e-9)


def test_equal_weights_are_exact():
    lw = torch.full((50,), 3.0, dtype=torch.float64)
    assert math.isclose(importance_log_z(lw).value, 3.0)
    assert importance_log_z(lw).stderr < 1e-7
    assert math.isclose(effective_sample_size(lw).value, 1.0)
    assert mean_estimate(lw).stderr == 0.0


def test_forbidden_samples_count_as_zero_weight():
    lw = torch.tensor([0.0, -torch.inf], dtype=torch.float64)
    assert math.isclose(importance_log_z(lw).value, math.log(0.5))
    assert effective_sample_size(lw).value == 0.5
    assert effective_sample_size(torch.full((3,), -torch.inf)).value == 0.0


def test_standard_errors_cover_and_halved_ones_do_not():
    """z-scores over 2000 repetitions have unit variance within sampling error; with half the error they do not."""
    noise, n, repetitions, sigma = Noise(11), 400, 2000, 0.5
    lw = sigma * noise.normal((repetitions, n))
    truths = {importance_log_z: sigma**2 / 2, effective_sample_size: math.exp(-(sigma**2)), mean_estimate: 0.0}
    for estimator, truth in truths.items():
        z = torch.tensor([(e.value - truth) / e.stderr for e in map(estimator, lw)])
        assert 0.85 < z.std() < 1.2
        assert not 0.85 < (2 * z).std() < 1.2
        assert abs(z.mean()) < 0.4
