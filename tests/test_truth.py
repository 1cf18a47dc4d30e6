"""True samples of lattices: exact mean energies, and chains that are as long as they are said to be."""

import json
from pathlib import Path

import pytest
import safetensors
import torch

import sabre.evaluation.truth as truth_module
from sabre.errors import InvalidArgumentError
from sabre.evaluation import true_samples
from sabre.mcmc import SwendsenWang, run, split_r_hat
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
    target = Ising(12, 0.4407)
    draws = target.log_density(true_samples(target, 8 * CHAINS, 1).x).reshape(8, CHAINS)
    assert abs(correlation(draws[:-1].flatten(), draws[1:].flatten())) < 4.5 / (7 * CHAINS) ** 0.5
    close = run(target, SwendsenWang(), num_chains=CHAINS, num_steps=2, burn_in=50, noise=Noise(1)).log_density
    assert correlation(close[0], close[1]) > 9 / CHAINS**0.5


@pytest.mark.parametrize(("n", "chains", "draws"), [(5, 1, 8), (60, 7, 9), (4200, CHAINS, 9)])
def test_chains_make_the_sweeps_that_the_source_names(n, chains, draws):
    counted = CheckedTarget(Ising(12, 0.6))
    truth = truth_module._from_chains(counted, n, 0)
    assert truth.x.shape == (n, 144)
    assert truth.source == "Swendsen-Wang, 200 sweeps and every 25th"
    assert counted.num_evaluations == chains * (1 + 200 + 25 * draws)
    assert truth.diagnostics["chains"] == chains
    assert 0.8 < truth.diagnostics["r_hat"] < 1.2
    assert 1 <= truth.diagnostics["autocorrelation_time"] < 2


def test_where_chains_do_not_agree_all_is_made_again_with_twice_the_sweeps(monkeypatch, capsys):
    monkeypatch.setattr(truth_module, "_BURN_IN", 1)
    monkeypatch.setattr(truth_module, "_THIN", 1)
    target = Ising(16, 0.4407)
    truth = truth_module._from_chains(target, 1024, 0)
    sweeps = int(truth.source.split()[1])
    assert 8 <= sweeps == int(truth.source.split("every ")[1][:-2]) <= 16
    monkeypatch.setattr(truth_module, "_MOST_DOUBLINGS", 1)
    assert "do not agree" not in capsys.readouterr().err
    truth_module._from_chains(target, 1024, 0)
    assert "do not agree" in capsys.readouterr().err


def test_r_hat_by_its_definition_and_for_chains_that_disagree():
    series = torch.randn(10, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    halves = [series[a : a + 5, c] for a in (0, 5) for c in range(6)]
    within = float(sum(half.var() for half in halves) / 12)
    between = float(torch.stack([half.mean() for half in halves]).var())
    assert split_r_hat(series) == pytest.approx(((within * 4 / 5 + between) / within) ** 0.5, abs=1e-12)
    long = torch.randn(4000, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert abs(split_r_hat(long) - 1) < 1e-3
    assert split_r_hat(long + torch.arange(50) % 2) > 1.1
    assert split_r_hat(long + torch.linspace(0, 2, 4000).unsqueeze(1)) > 1.1
    assert split_r_hat(torch.ones(4, 3)) == 1
    assert split_r_hat(torch.ones(4, 3) * torch.arange(3)) == torch.inf
    with pytest.raises(InvalidArgumentError, match="at least 4"):
        split_r_hat(torch.ones(3, 3))


def test_the_seed_decides_and_nothing_is_made_up():
    target = Ising(12, 0.5)
    again, other = true_samples(target, 40, 3), true_samples(target, 40, 4)
    assert torch.equal(true_samples(target, 40, 3).x, again.x)
    assert not torch.equal(again.x, other.x)
    assert true_samples(PeakedTarget(4, 3), 10, 0).source == "exact"
    assert true_samples(Ising(12, 0.5, coupling=-1.0), 10, 0) is None


def files(directory):
    return sorted(directory.rglob("*.safetensors"))


def test_true_samples_are_made_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SABRE_CACHE", str(tmp_path))
    target, made = Ising(12, 0.5), []
    shipped = truth_module._made
    monkeypatch.setattr(truth_module, "_made", lambda *key: made.append(key[1:3]) or shipped(*key))
    first, again = true_samples(target, 40, 3), true_samples(target, 40, 3)
    assert made == [(40, 3)]
    assert torch.equal(first.x, again.x)
    assert (first.source, first.diagnostics) == (again.source, again.diagnostics)
    assert again.x.dtype == torch.int64
    for other in [(Ising(12, 0.6), 40, 3), (target, 41, 3), (target, 40, 4)]:
        true_samples(*other)
    assert len(made) == len(files(tmp_path)) == 4
    with safetensors.safe_open(files(tmp_path)[0], "pt") as file:
        assert json.loads(file.metadata()["sabre"])["provenance"]["versions"]["torch"] == torch.__version__


@pytest.mark.parametrize("harm", ["cut", "empty", "another key", "off", "not writable"])
def test_a_cache_that_cannot_be_trusted_is_done_without(harm, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("SABRE_CACHE", str(cache))
    target = Ising(12, 0.5)
    first = true_samples(target, 40, 3)
    (file,) = files(cache)
    if harm == "another key":
        true_samples(target, 40, 4)
        other = next(one for one in files(cache) if one != file)
        file.write_bytes(other.read_bytes())
    elif harm == "off":
        monkeypatch.setenv("SABRE_CACHE", "off")
        file.unlink()
    elif harm == "not writable":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("SABRE_CACHE", str(tmp_path / "file" / "cache"))
    else:
        file.write_bytes(file.read_bytes()[: 0 if harm == "empty" else -10])
    assert torch.equal(true_samples(target, 40, 3).x, first.x)
    assert file.exists() == (harm != "off")


def test_progress_of_the_chains_is_told():
    told = []
    truth_module._from_chains(Ising(10, 0.5), 24, 0, lambda stage, share: told.append((stage, share)))
    assert {stage for stage, _ in told} == {"true samples"}
    assert [share for _, share in told] == [k / 8 for k in range(1, 9)]
