"""The integrated autocorrelation time, against its definition and against a process where it is known."""

import math

import pytest
import torch
from scipy.signal import lfilter

from sabre.errors import InvalidArgumentError
from sabre.mcmc import integrated_time


def autoregressive(rho, steps, chains, seed=0):
    """f_s = rho f_{s-1} + noise, begun in equilibrium."""
    noise = torch.randn(steps, chains, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    noise[0] /= math.sqrt(1 - rho**2)
    return torch.from_numpy(lfilter([1.0], [1.0, -rho], noise.numpy(), axis=0))


def by_definition(series):
    """Lag after lag, until the lag is five times the time so far."""
    steps = len(series)
    f = series - series.mean()
    tau, gamma = 1.0, float((f * f).mean())
    for lag in range(1, steps):
        if lag - 1 >= 5 * tau:
            break
        tau += 2 * float((f[:-lag] * f[lag:]).sum() / series.numel()) / gamma
    return min(max(tau, 1.0), steps)


def misfit(rho, steps=20_000, chains=64, claimed=None):
    """Distance from (1 + rho) / (1 - rho), in standard errors tau sqrt(2 (2 M + 1) / n) with the window M = 5 tau."""
    tau = (1 + rho) / (1 - rho) if claimed is None else claimed
    stderr = tau * math.sqrt(2 * (10 * tau + 1) / (steps * chains))
    return abs(integrated_time(autoregressive(rho, steps, chains)) - tau) / stderr


@pytest.mark.parametrize("rho", [0.3, 0.8, 0.95])
def test_time_of_an_autoregressive_process(rho):
    assert misfit(rho) < 4.5


def test_wrong_conventions_are_noticed():
    tau = 1.8 / 0.2
    assert misfit(0.8, claimed=tau / 2) > 4.5
    assert misfit(0.8, claimed=-1 / math.log(0.8)) > 4.5
    assert misfit(0.8, claimed=tau + 1) > 4.5


@pytest.mark.parametrize(("steps", "chains"), [(1, 4), (2, 3), (7, 1), (64, 5), (501, 2)])
def test_time_is_that_of_its_definition(steps, chains):
    series = autoregressive(0.6, steps, chains) + torch.arange(chains)
    assert integrated_time(series) == pytest.approx(by_definition(series), rel=1e-10)


def test_independent_and_alternating_series_give_one():
    assert 1 <= integrated_time(autoregressive(0.0, 20_000, 64)) < 1.02
    assert integrated_time(autoregressive(-0.7, 5000, 8)) == 1


def test_chains_that_do_not_move_give_the_number_of_steps():
    assert integrated_time(torch.full((50, 3), 0.1)) == 50
    assert integrated_time(torch.tensor([0.0, 1.0, 5.0]).expand(50, 3)) == pytest.approx(50)


def test_shift_and_scale_do_not_matter():
    series = autoregressive(0.7, 300, 4)
    assert integrated_time(3 - 20 * series) == pytest.approx(integrated_time(series), rel=1e-8)


@pytest.mark.parametrize("series", [torch.zeros(0, 3), torch.tensor([[0.0], [-math.inf]]), torch.tensor([[math.nan]])])
def test_series_that_cannot_be_judged_are_refused(series):
    with pytest.raises(InvalidArgumentError, match="empty or not finite"):
        integrated_time(series)
