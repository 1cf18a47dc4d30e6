"""Optimal transport against brute force, Sinkhorn's iterations against their definition and against the optimum."""

import itertools
import sys

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from sabre.errors import InvalidArgumentError
from sabre.metrics import Points, optimal_transport, points, sinkhorn
from sabre.metrics.assignment import solve_assignment
from sabre.metrics.points import cost_matrix, cost_rows, matched_cost, merged
from sabre.metrics.softmin import near_pairs, softmin
from sabre.noise import Noise
from sabre.targets import GMM40, Ising, Potts

SINKHORN = sys.modules["sabre.metrics.sinkhorn"]
ASSIGNMENT = sys.modules["sabre.metrics.assignment"]


def states(n, dim, categories, seed):
    return Noise.named(seed, "states").integers(categories, (n, dim))


def hamming(n, seed, dim=5, categories=2):
    """Random states, few enough that many are equal."""
    target = {2: Ising(2, 0.4), 3: Potts(2, 3, 0.4)}.get(categories) if dim == 4 else None
    x = states(n, dim, categories, seed)
    return points(target, x) if target else Points(x.float(), 1.0, True)


def continuous(n, seed, axes=3):
    whole = states(n, axes, 4096, seed)
    return Points(whole.double() / 1000 + seed, 1.0, False)


SAMPLES = {
    "two categories": lambda n, seed: hamming(n, seed, 4),
    "three categories": lambda n, seed: hamming(n, seed, 4, 3),
    "longer": lambda n, seed: hamming(n, seed, 12),
    "continuous": continuous,
    "few places": lambda n, seed: Points(states(n, 1, 4, seed).double() * 1.1, 1.0, False),
}
each_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


@pytest.mark.parametrize("categories", [2, 3])
def test_costs_of_states_are_hamming_distances(categories):
    target = Ising(3, 0.4) if categories == 2 else Potts(3, 3, 0.4)
    x, y = states(20, 9, categories, 0), states(15, 9, categories, 1)
    cost = cost_matrix(points(target, x), points(target, y))
    assert (cost == (x.unsqueeze(1) != y).sum(2).numpy()).all()


def test_costs_of_decoded_states_are_squared_distances():
    target = GMM40(2, bits=6)
    x, y = states(20, 12, 2, 0), states(20, 12, 2, 1)
    a, b = target.decode(x), target.decode(y)
    direct = (a.unsqueeze(1) - b).square().sum(2).numpy()
    np.testing.assert_allclose(cost_matrix(points(target, x), points(target, y)), direct, rtol=1e-6)
    np.testing.assert_allclose(matched_cost(points(target, x), points(target, y)), direct.diagonal(), rtol=1e-12)


@each_sample
def test_chunks_of_the_matrix_and_its_upper_half_agree_with_the_whole(sample, monkeypatch):
    a = sample(50, 0)
    whole = cost_matrix(a, a)
    monkeypatch.setattr(sys.modules["sabre.metrics.points"], "_PRODUCT", 600)
    monkeypatch.setattr(sys.modules["sabre.metrics.points"], "_CHUNK", 250)
    found = np.full((50, 50), np.inf)
    for rows, cost in cost_rows(a, a, is_upper=True):
        found[rows, rows.start :] = cost
    upper = np.triu(np.ones((50, 50), dtype=bool), 1)
    np.testing.assert_allclose(found[upper], whole[upper], atol=1e-6)
    assert np.isinf(found[~upper]).all()
    np.testing.assert_allclose(cost_matrix(a, a), whole, atol=1e-6)


def test_points_of_the_wrong_length_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"give at least one row of 9 sites"):
        points(Ising(3, 0.4), states(4, 8, 2, 0))


@each_sample
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_transport_is_the_best_of_all_permutations(sample, n):
    for seed in range(0, 24, 2):
        a, b = sample(n, seed), sample(n, seed + 1)
        cost = (a.scale * (a.coords.double().unsqueeze(1) - b.coords.double()).square().sum(2)).numpy()
        best = min(sum(cost[i, s[i]] for i in range(n)) for s in itertools.permutations(range(n))) / n
        found = optimal_transport(a, b)
        assert found.cost == pytest.approx(best, rel=1e-6, abs=1e-12)
        assert sorted(found.assignment.tolist()) == list(range(n))
        assert np.mean([cost[i, j] for i, j in enumerate(found.assignment.tolist())]) == pytest.approx(found.cost)


@each_sample
def test_candidates_lead_to_the_optimum_and_its_potentials_prove_it(sample, monkeypatch):
    monkeypatch.setattr(ASSIGNMENT, "_SMALL", 8)
    monkeypatch.setattr(ASSIGNMENT, "_PER_LINE", 2)
    for seed in range(0, 20, 2):
        cost = cost_matrix(sample(60 + seed, seed), sample(60 + seed, seed + 1))
        n, found = len(cost), solve_assignment(cost)
        row, column = linear_sum_assignment(cost)
        assert cost[np.arange(n), found.column].sum(dtype=float) == pytest.approx(cost[row, column].sum(dtype=float))
        assert sorted(found.column) == list(range(n))
        reduced = cost - found.u[:, None] - found.v
        assert found.slack <= 1e-9 * cost.max()
        assert reduced.min() >= -found.slack
        np.testing.assert_allclose(reduced[np.arange(n), found.column], 0, atol=1e-9 * cost.max())


def test_differences_below_the_rounding_of_reduced_costs_count(monkeypatch):
    monkeypatch.setattr(ASSIGNMENT, "_SMALL", 8)
    monkeypatch.setattr(ASSIGNMENT, "_PER_LINE", 2)
    for seed in range(10):
        cost = (1e4 + states(50, 50, 20, seed).numpy() * 2.0**-10).astype(np.float32)
        row, column = linear_sum_assignment(cost)
        assert cost[row, solve_assignment(cost).column].sum(dtype=float) == cost[row, column].sum(dtype=float)


@pytest.mark.parametrize("name", ["continuous", "longer", "collapsed"])
def test_large_transport_is_that_of_scipy(name):
    sample = SAMPLES.get(name, SAMPLES["longer"])
    a, b = sample(1200, 0), sample(1200, 1)
    if name == "collapsed":
        a = a.take(np.arange(1200) // 900 * np.arange(1200))
    cost = cost_matrix(a, b)
    row, column = linear_sum_assignment(cost)
    assert optimal_transport(a, b).cost == pytest.approx(cost[row, column].mean(dtype=float), rel=1e-6)


@each_sample
def test_transport_between_a_sample_and_its_shuffle_costs_nothing(sample):
    a = sample(1100, 3)
    assert optimal_transport(a, a.take(np.arange(1100)[::-1] * 7 % 1100)).cost == 0


def test_transport_between_unequal_numbers_is_refused():
    with pytest.raises(InvalidArgumentError, match="give equally many"):
        optimal_transport(continuous(3, 0), continuous(4, 1))


def iterated(cost, epsilon, iterations):
    """Sinkhorn's iterations as they are defined: cost, and the violation of the first marginal."""
    cost = torch.as_tensor(cost).double()
    n, m = cost.shape
    f, g = torch.zeros(n, 1).double(), torch.zeros(m).double()
    for _ in range(iterations):
        f = -epsilon * ((g - cost) / epsilon - np.log(m)).logsumexp(1, keepdim=True)
        g = -epsilon * ((f - cost) / epsilon - np.log(n)).logsumexp(0)
    plan = ((f + g - cost) / epsilon).exp() / (n * m)
    return float((plan * cost).sum()), float((plan.sum(1) - 1 / n).abs().sum())


@each_sample
@pytest.mark.parametrize("per_row", [2, 8, 64])
def test_sinkhorn_does_what_it_says_with_near_pairs_and_merged_points(sample, per_row, monkeypatch):
    monkeypatch.setattr(SINKHORN, "_PER_ROW", per_row)
    a, b = sample(60, 0), sample(45, 1)
    cost = (a.scale * (a.coords.double().unsqueeze(1) - b.coords.double()).square().sum(2)).numpy()
    for epsilon, iterations in [(1e-3, 1), (1e-3, 30), (1e-2, 10), (0.3, 20)]:
        found = sinkhorn(a, b, epsilon, iterations)
        expected = iterated(cost, epsilon, iterations)
        assert (found.cost, found.residual) == pytest.approx(expected, rel=1e-8, abs=1e-9), (epsilon, iterations)


def test_near_pairs_suffice_where_they_are_proved_to():
    a, b, weight = continuous(50, 0), continuous(60, 1), np.full(60, -np.log(60))
    f = softmin(a, b, np.zeros(60), weight, 0.01).value
    near = near_pairs(a, b, f, np.zeros(60), 8)
    seen = set()
    for rise in (0.0, 0.5, 5.0, 50.0):
        g = np.where(np.arange(60) == 7, rise, 0.0)
        (value, mean), is_proved = near.softmin(g, weight, 0.01)
        whole = softmin(a, b, g, weight, 0.01)
        np.testing.assert_allclose(value[is_proved], whole.value[is_proved], rtol=1e-12)
        np.testing.assert_allclose(mean[is_proved], whole.mean_cost[is_proved], rtol=1e-12)
        seen |= set(is_proved.tolist())
    assert seen == {True, False}


def test_near_pairs_do_the_work_where_they_suffice(monkeypatch):
    calls = []
    whole = SINKHORN.softmin
    monkeypatch.setattr(SINKHORN, "softmin", lambda a, *rest: calls.append(len(a)) or whole(a, *rest))
    sinkhorn(continuous(300, 0), continuous(300, 1))
    assert sum(calls) < 5 * 300


def test_equal_points_are_merged_with_their_shares():
    found, share = merged(Points(torch.tensor([[0.0], [1.0], [-0.0], [1.0], [1.0]]).double(), 1.0, False))
    assert dict(zip(found.coords.flatten().tolist(), share.tolist(), strict=True)) == {0.0: 0.4, 1.0: 0.6}


def test_repeated_samples_change_nothing():
    a, b = continuous(40, 0), continuous(40, 1)
    thrice = a.take(np.arange(120) % 40)
    assert sinkhorn(thrice, b, 0.1, 50) == pytest.approx(sinkhorn(a, b, 0.1, 50), rel=1e-9)


def test_sinkhorn_comes_down_to_the_exact_cost():
    a, b = continuous(12, 0), continuous(12, 1)
    exact = optimal_transport(a, b).cost
    found = [sinkhorn(a, b, epsilon, 3000) for epsilon in (1.0, 0.3, 0.1, 0.05)]
    assert all(one.converged for one in found)
    costs = [one.cost for one in found]
    assert costs == sorted(costs, reverse=True)
    assert exact * (1 - 1e-9) <= costs[-1] <= exact * (1 + 1e-3) < costs[0]


@each_sample
def test_sinkhorn_is_below_the_exact_cost_only_where_it_says_so(sample):
    below = 0
    for seed in range(0, 20, 2):
        a, b = sample(40, seed), sample(40, seed + 1)
        exact = optimal_transport(a, b).cost
        for iterations in (1, 100):
            found = sinkhorn(a, b, num_iterations=iterations)
            assert found.cost + found.shortfall >= exact * (1 - 1e-9)
            assert found.shortfall >= found.residual / 2 * cost_matrix(a, b).max() * (1 - 1e-6)
            if found.converged:
                assert found.cost >= exact * (1 - 1.001e-3)
            below += found.cost < exact * (1 - 1e-2) and not found.converged
    assert below


def test_sinkhorn_between_a_sample_and_itself_is_zero_and_converged():
    a = hamming(50, 0, 12)
    found = sinkhorn(a, a)
    assert found.cost == pytest.approx(0, abs=1e-12)
    assert found.converged


def test_sinkhorn_without_regularisation_is_refused():
    with pytest.raises(InvalidArgumentError, match="give an epsilon above 0"):
        sinkhorn(continuous(3, 0), continuous(3, 1), epsilon=0.0)
