"""True samples of lattices: exact mean energies, and chains that are as long as they are said to be."""

import json
from pathlib import Path

import pytest
import torch

from sabre.evaluation import true_samples
from sabre.mcmc import SwendsenWang, run
from sabre.noise import Noise
from sabre.targets import CheckedTarget, Ising
from small import PeakedTarget

PUBLISHED = json.loads((Path(__file__).parent / "data" / "exact.json").read_text())["ising_mean_energy"]["16"]
CHAINS = 512


def energy_stderr(target, n, h=1e-3):
    """The standard error of the mean energy of n independent states: Var E = d^2 log Z / d beta^2, by differences."""
    low, middle, high = (Ising(target.size, target.beta + d).log_z_exact for d in (-h, 0.0, h))
    return ((low + high - 2 * middle) / h**2 / n) ** 0.5


def mean_energy(target, x):
    return float(-target.log_density(x).mean() / target.beta)


def one_sweep(target, n):
    """What chains without burn-in would give."""
    return run(target, SwendsenWang(), num_chains=n, num_steps=1, noise=Noise(0)).samples[0]


@pytest.mark.parametrize("beta", ["0.4407", "1.2"])
def test_mean_energy_is_the_published_one_and_without_burn_in_it_is_not(beta):
    n, target, exact = 256, Ising(16, float(beta)), PUBLISHED[beta]
    bound = 4.5 * energy_stderr(target, n)
    assert abs(mean_energy(target, true_samples(target, n, 0).x) - exact) < bound < 0.04 * abs(exact)
    assert abs(mean_energy(target, one_sweep(target, n)) - exact) > 4 * bound


def correlation(a, b):
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).mean() / (a.std() * b.std()))


def test_states_of_one_chain_are_independent_and_those_of_consecutive_sweeps_are_not():
    """The correlation of n independent pairs is below 4.5 / sqrt(n)."""
    target = Ising(8, 0.4407)
    first, second = target.log_density(true_samples(target, 2 * CHAINS, 1).x).split(CHAINS)
    assert abs(correlation(first, second)) < 4.5 / CHAINS**0.5
    close = run(target, SwendsenWang(), num_chains=CHAINS, num_steps=2, burn_in=50, noise=Noise(1)).log_density
    assert correlation(close[0], close[1]) > 9 / CHAINS**0.5


@pytest.mark.parametrize(("n", "chains", "draws"), [(60, 60, 1), (600, CHAINS, 2)])
def test_chains_make_the_sweeps_that_the_source_names(n, chains, draws):
    counted = CheckedTarget(Ising(5, 0.5))
    truth = true_samples(counted, n, 0)
    assert truth.x.shape == (n, 25)
    assert truth.source == "Swendsen-Wang, 200 sweeps and every 25th"
    assert counted.num_evaluations == chains * (1 + 200 + 25 * draws)


def test_the_seed_decides_and_nothing_is_made_up():
    target = Ising(5, 0.5)
    again, other = true_samples(target, 40, 3), true_samples(target, 40, 4)
    assert torch.equal(true_samples(target, 40, 3).x, again.x)
    assert not torch.equal(again.x, other.x)
    assert true_samples(PeakedTarget(4, 3), 10, 0).source == "exact"
    assert true_samples(Ising(5, 0.5, coupling=-1.0), 10, 0) is None
