"""MMD, lattice and energy metrics against loops over their definitions; every metric with its error by `compare`."""

import itertools
import math
import sys

import numpy as np
import pytest
import torch
from scipy.stats import wasserstein_distance

from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.metrics import (
    METRICS,
    Points,
    applicable,
    compare,
    correlation,
    correlation_error,
    energies,
    energy_distance,
    magnetisation,
    magnetisation_error,
    maximum_mean_discrepancy,
    points,
)
from sabre.metrics.selection import median_of_pairs
from sabre.noise import Noise
from sabre.targets import GMM40, Ising, Potts

SELECTION = sys.modules["sabre.metrics.selection"]


def states(n, dim, categories, seed):
    return Noise.named(seed, "states").integers(categories, (n, dim))


def samples(kind, n, m):
    if kind == "hamming":
        return tuple(points(Ising(3, 0.4), states(k, 9, 2, seed)) for seed, k in enumerate((n, m)))
    if kind == "three categories":
        return tuple(points(Potts(2, 3, 0.4), states(k, 4, 3, seed)) for seed, k in enumerate((n, m)))
    values = {"continuous": 4096, "few places": 3}[kind]
    return tuple(Points(states(k, 2, values, seed).double() / 7, 1.0, False) for seed, k in enumerate((n, m)))


KINDS = ["hamming", "three categories", "continuous", "few places"]


def distance(x, y, scale):
    return scale * float((x.double() - y.double()).square().sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), [(2, 2), (13, 8), (20, 20)])
def test_mmd_is_its_definition(kind, n, m):
    a, b = samples(kind, n, m)
    pool = [*a.coords, *b.coords]
    pairs = torch.tensor([distance(x, y, a.scale) for x, y in itertools.combinations(pool, 2)])
    bandwidth = float(pairs.double().median()) ** 0.5

    def mean(left, right, is_unbiased=False):
        kernel = [
            math.exp(-distance(x, y, a.scale) / (2 * bandwidth**2))
            for (i, x), (j, y) in itertools.product(enumerate(left), enumerate(right))
            if not (is_unbiased and i == j)
        ]
        return sum(kernel) / len(kernel)

    cross = 2 * mean(a.coords, b.coords)
    biased = mean(a.coords, a.coords) + mean(b.coords, b.coords) - cross
    unbiased = mean(a.coords, a.coords, True) + mean(b.coords, b.coords, True) - cross
    found = maximum_mean_discrepancy(a, b)
    assert found.bandwidth == pytest.approx(bandwidth, rel=1e-6)
    assert found.biased == pytest.approx(math.sqrt(max(0, biased)), rel=1e-5, abs=1e-7)
    assert found.unbiased_square == pytest.approx(unbiased, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", ["continuous", "few places"])
@pytest.mark.parametrize("kept", [-1, 3, 2**24])
def test_the_median_of_pairs_is_that_of_torch(kind, kept, monkeypatch):
    monkeypatch.setattr(SELECTION, "_KEPT", kept)
    for n in (8, 11, 30):
        a, b = samples(kind, n, 9)
        pool = torch.cat([a.coords, b.coords])
        i, j = torch.triu_indices(len(pool), len(pool), 1)
        direct = float((pool[i] - pool[j]).square().sum(1).median())
        assert median_of_pairs(a, b) == pytest.approx(direct, rel=1e-12)


def test_mmd_where_most_points_are_equal_has_the_kernel_of_equality():
    a = Points(torch.zeros(10, 3), 1.0, True)
    b = Points((torch.arange(10) == 0).float().unsqueeze(1).expand(10, 3).contiguous(), 1.0, True)
    found = maximum_mean_discrepancy(a, b)
    assert found.bandwidth == 0
    assert found.biased == pytest.approx(math.sqrt(1 + 0.82 - 2 * 0.9))


@pytest.mark.parametrize("kind", KINDS)
def test_mmd_between_a_sample_and_itself_is_zero(kind):
    a = samples(kind, 40, 2)[0]
    assert maximum_mean_discrepancy(a, a).biased == pytest.approx(0, abs=1e-7)


def test_mmd_of_one_point_is_refused():
    with pytest.raises(InvalidArgumentError, match="give two or more of each"):
        maximum_mean_discrepancy(*samples("continuous", 1, 5))


LATTICES = [Ising(3, 0.4), Ising(4, 0.4, field=0.3), Potts(3, 3, 0.4), Potts(4, 4, 0.4, field=[0.1, 0.0, 0.0, 0.2])]
each_lattice = pytest.mark.parametrize("target", LATTICES, ids=repr)


def uneven(target, seed):
    """States that differ in law from site to site, and from row to column."""
    x = states(30, target.dim, target.num_categories, seed)
    row = target.layout.coords[:, 0]
    return torch.where((row == 0) & (torch.arange(30).unsqueeze(1) % 3 > 0), 1, x)


def magnetisation_of_site(target, x, i):
    if isinstance(target, Ising):
        return sum(2 * int(state[i]) - 1 for state in x) / len(x)
    q = target.num_categories
    largest = max(sum(int(state[i] == c) for state in x) for c in range(q))
    return (q * largest / len(x) - 1) / (q - 1)


def correlation_of_sites(target, x, i, j):
    if isinstance(target, Potts):
        return sum(int(state[i] == state[j]) - 1 / target.num_categories for state in x) / len(x)
    both = sum((2 * int(state[i]) - 1) * (2 * int(state[j]) - 1) for state in x) / len(x)
    return both - magnetisation_of_site(target, x, i) * magnetisation_of_site(target, x, j)


@each_lattice
def test_magnetisation_error_is_its_definition(target):
    x, true_x, size = uneven(target, 0), states(25, target.dim, target.num_categories, 1), target.size
    total = 0.0
    for k in range(size):
        for line in ([k * size + c for c in range(size)], [r * size + k for r in range(size)]):
            mean, truth = (sum(magnetisation_of_site(target, y, i) for i in line) / size for y in (x, true_x))
            total += abs(mean - (0 if target.num_phases else truth))
    assert magnetisation_error(target, x, true_x) == pytest.approx(total / (2 * size), rel=1e-12)
    site = magnetisation(target, x).flatten().tolist()
    assert site == pytest.approx([magnetisation_of_site(target, x, i) for i in range(target.dim)])


@each_lattice
def test_correlation_error_is_its_definition(target):
    size = target.size

    def average(x, r, down):
        pairs = [
            (row * size + column, (row + r) % size * size + column if down else row * size + (column + r) % size)
            for row, column in itertools.product(range(size), repeat=2)
        ]
        return sum(correlation_of_sites(target, x, i, j) for i, j in pairs) / size**2

    x, true_x = uneven(target, 0), states(25, target.dim, target.num_categories, 1)
    found = correlation(target, x)
    direct = [[average(x, r, down) for r in range(size)] for down in (True, False)]
    np.testing.assert_allclose(found, direct, atol=1e-12)
    error = np.abs(np.array(direct) - [[average(true_x, r, down) for r in range(size)] for down in (True, False)]).sum()
    assert correlation_error(target, x, true_x) == pytest.approx(error / (2 * size), rel=1e-12)


def test_lattice_metrics_of_other_targets_are_refused():
    with pytest.raises(InvalidArgumentError, match="leave these metrics out"):
        magnetisation(GMM40(2), states(5, 16, 2, 0))


def test_energies_are_minus_log_densities_whatever_the_chunks(monkeypatch):
    monkeypatch.setattr(sys.modules["sabre.metrics.energy"], "_CHUNK", 7)
    x = states(50, 9, 2, 0)
    torch.testing.assert_close(energies(Ising(3, 0.4), x), -Ising(3, 0.4).log_density(x))


@pytest.mark.parametrize("levels", [4, 100, 10**6])
def test_energy_distances_are_their_definitions(levels):
    model = Noise.named(0, "energies").integers(levels, (200,)).double().square()
    truth = Noise.named(1, "energies").integers(levels, (200,)).double()
    ordered = sorted(truth.tolist())
    ends = sorted({ordered[math.ceil(k * 200 / 64) - 1] for k in range(1, 64)})
    bins = list(itertools.pairwise([-math.inf, *ends, math.inf]))

    def share(energy, low, high):
        return sum(low < e <= high for e in energy.tolist()) / len(energy)

    tv = sum(abs(share(model, *ends) - share(truth, *ends)) for ends in bins)
    found = energy_distance(model, truth)
    assert found.wasserstein == pytest.approx(wasserstein_distance(model, truth), rel=1e-12)
    assert found.num_bins == len(bins)
    assert found.total_variation == pytest.approx(tv / 2, rel=1e-12)
    assert energy_distance(truth, truth)[:2] == (0, 0)


def test_a_forbidden_state_has_infinite_energy():
    forbidden = torch.tensor([1.0, 2.0, math.inf]).double()
    found = energy_distance(forbidden, torch.tensor([1.0, 2.0, 3.0]).double())
    assert (found.total_variation, found.wasserstein) == (pytest.approx(1 / 3), math.inf)


@pytest.mark.parametrize("target", [Ising(3, 0.4), Potts(3, 3, 0.4), GMM40(1, bits=6)], ids=repr)
def test_compare_measures_all_that_applies(target):
    x, true_x = target.sample(70, Noise(0)), target.sample(70, Noise(1))
    seen = []
    found = compare(target, x, true_x, progress=lambda name, share: seen.append((name, share)))
    assert tuple(found) == applicable(target)
    assert set(METRICS) - set(found) == (set() if isinstance(target, Ising | Potts) else set(LATTICE_ONLY))
    for value in found.values():
        assert math.isfinite(value.value)
        assert 0 <= value.stderr < math.inf
        assert value.seconds > 0
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert {name for name, _ in seen} <= set(found)
    assert {"residual", "shortfall", "converged"} <= set(found["sinkhorn"].details)
    assert found["mmd"].details["bandwidth"] > 0
    assert found["transport"].value > found["transport"].details["gap"]


LATTICE_ONLY = ["magnetisation_error", "correlation_error"]


def test_compare_measures_what_is_asked_for_and_shares_the_work(monkeypatch):
    calls = []
    module = sys.modules["sabre.metrics.compare"]
    whole = module.maximum_mean_discrepancy
    monkeypatch.setattr(module, "maximum_mean_discrepancy", lambda *a: calls.append(a) or whole(*a))
    target = Ising(3, 0.4)
    x, true_x = states(64, 9, 2, 0), states(64, 9, 2, 1)
    found = compare(target, x, true_x, names=["mmd_unbiased", "energy_w1", "mmd"])
    assert tuple(found) == ("mmd_unbiased", "energy_w1", "mmd")
    assert len(calls) == 1 + 16
    assert found["energy_w1"].value == energy_distance(energies(target, x), energies(target, true_x)).wasserstein


def test_few_samples_have_fewer_blocks_and_very_few_no_error():
    target = Ising(3, 0.4)
    found = {n: compare(target, states(n, 9, 2, 0), states(n, 9, 2, 1), names=["energy_tv"]) for n in (6, 9)}
    assert found[6]["energy_tv"].stderr == math.inf
    assert found[9]["energy_tv"].stderr < math.inf


def test_names_that_make_no_sense_are_refused():
    x = states(16, 8, 2, 0)
    with pytest.raises(UnknownNameError, match="Did you mean 'transport'"):
        compare(GMM40(1), x, x, names=["transprot"])
    with pytest.raises(InvalidArgumentError, match="'correlation_error' is not defined for 'gmm40'; use transport"):
        compare(GMM40(1), x, x, names=["correlation_error"])
    with pytest.raises(InvalidArgumentError, match="16 samples and 15 true ones"):
        compare(GMM40(1), x, x[:15])


def test_standard_errors_are_the_spread_of_independent_repetitions():
    """The spread of R values is known to 1 / sqrt(2 R), and a block error, from 16 values, to 1 / sqrt(2 * 15 * R)."""
    target, model, repetitions = Ising(3, 0.3), Ising(3, 0.1), 200
    noise = Noise.named(0, "repetitions")
    name = "energy_w1"
    found = [
        compare(target, model.sample(256, noise), target.sample(256, noise), names=[name])[name]
        for _ in range(repetitions)
    ]
    spread = float(np.std([one.value for one in found], ddof=1))
    stated = math.sqrt(np.mean([one.stderr**2 for one in found]))
    allowed = 4 * math.sqrt(1 / (2 * repetitions) + 1 / (2 * 15 * repetitions))

    def is_right(error):
        return abs(error / spread - 1) < allowed

    assert is_right(stated)
    assert not is_right(stated * math.sqrt(16))
    assert not is_right(stated / math.sqrt(16))
