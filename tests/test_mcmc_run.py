"""Whole runs agree with enumeration within their error bars, and the clusters with a reference."""

import jaxtyping
import pytest
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components as reference_components

from mcmc_targets import F64, INF, Coupled, Table, fielded, lattice, random, storages
from sabre.errors import InvalidArgumentError
from sabre.mcmc import KERNELS, Categorical, ChainState, advance, init, integrated_time, run, step
from sabre.mcmc.components import connected_components
from sabre.noise import Noise
from sabre.tape import all_states
from sabre.targets import Pairwise


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_components_are_those_of_a_reference(rate):
    snake = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    sparse = torch.tensor([(0, 5), (5, 7), (1, 0)])
    for dim, edges in ((100, lattice(10)), (200, torch.stack([snake[:-1], snake[1:]], 1)), (9, sparse)):
        model = Pairwise(edges, torch.ones(len(edges)), torch.zeros(dim, 2))
        neighbour, _, edge = model.neighbours
        open_edge = Noise(4).bernoulli(torch.full((5, len(edges)), rate))
        for chain, root in enumerate(connected_components(open_edge, neighbour, edge)):
            i, j = edges[open_edge[chain]].t().numpy()
            _, label = reference_components(coo_array((i * 0 + 1, (i, j)), shape=(dim, dim)), directed=False)
            smallest = {}
            for site, value in enumerate(label):
                smallest.setdefault(value, site)
            assert root.tolist() == [smallest[value] for value in label]


def fielded_ising(coupling):
    edges = lattice(4)
    return Coupled(edges.tolist(), torch.full((len(edges),), coupling, dtype=F64), random(7, 16, 2, scale=0.4))


def expectation(target, observable):
    states = all_states(target.dim, target.num_categories)
    return float(target.log_density(states).softmax(0) @ observable(states))


def z_score(series, exact):
    stderr = series.std() * (integrated_time(series) / series.numel()) ** 0.5
    return abs(float(series.mean()) - exact) / float(stderr)


STEPS = {"hamming": 3000, "categorical": 3000, "gibbs": 2000, "swendsen-wang": 400}


@pytest.mark.parametrize("name", KERNELS)
def test_runs_agree_with_enumeration_and_a_wrong_temperature_is_noticed(name):
    target, colder = fielded_ising(0.7), fielded_ising(0.8)
    result = run(target, name, num_steps=STEPS[name], burn_in=STEPS[name] // 10, seed=2)

    def energy(x):
        return target.log_density(x)

    def magnetisation(x):
        return (2.0 * x - 1).double().mean(1)

    flat = result.samples.flatten(0, 1)
    for observable in (energy, magnetisation):
        series = observable(flat).reshape(result.log_density.shape)
        assert z_score(series, expectation(target, observable)) < 4.5
    assert z_score(result.log_density, expectation(colder, energy)) > 4.5
    assert torch.allclose(result.log_density, energy(flat).reshape(result.log_density.shape), atol=1e-10)
    assert result.autocorrelation_time == integrated_time(result.log_density)
    assert result.effective_samples == pytest.approx(result.log_density.numel() / result.autocorrelation_time)
    assert (result.acceptance == 1) == (name in ("gibbs", "swendsen-wang"))


def test_the_same_seed_gives_the_same_run():
    target = fielded(3)
    first, second, other = (run(target, "hamming", num_chains=5, num_steps=20, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.samples, second.samples)
    assert not torch.equal(first.samples, other.samples)
    given = run(target, "hamming", num_chains=5, num_steps=20, seed=7, noise=Noise.named(1, "mcmc"))
    assert torch.equal(first.samples, given.samples)


def test_runs_keep_what_they_were_asked_to():
    target, x = fielded(3), torch.zeros(6, 4, dtype=torch.int32)
    every = run(target, "gibbs", num_steps=11, x=x)
    assert every.samples.shape == (11, 6, 4)
    assert torch.equal(every.samples[-1], every.final.x)
    thinned = run(target, "gibbs", num_steps=9, burn_in=2, thin=3, x=x)
    assert torch.equal(thinned.samples, every.samples[[4, 7, 10]])
    last = run(target, "gibbs", num_steps=9, burn_in=2, thin=3, x=x, keep="last")
    assert torch.equal(last.samples, every.samples[[10]])
    assert torch.equal(last.log_density, every.log_density[[10]])
    assert last.effective_samples == 6
    assert last.autocorrelation_time == thinned.autocorrelation_time
    assert not storages(last.samples) & storages(last.final.x)
    assert torch.equal(x, torch.zeros_like(x))


@pytest.mark.parametrize(
    ("name", "hidden", "per_step"), [("hamming", False, 1), ("gibbs", False, 1), ("gibbs", True, 4)]
)
def test_evaluations_are_counted(name, hidden, per_step):
    target = fielded(3, hidden=hidden)
    result = run(target, name, num_chains=7, num_steps=10, burn_in=3, thin=2)
    assert result.num_evaluations == target.rows == 7 * (1 + 13 * per_step)


def test_diagnostics_of_thinned_and_last_samples():
    target, x = fielded(3), torch.zeros(6, 4, dtype=torch.long)
    result = run(target, "hamming", num_steps=60, thin=3, x=x, noise=Noise(1), keep="last")
    _, acceptance = advance(KERNELS["hamming"](), init(x, target), target, Noise(1), 60)
    assert result.acceptance == pytest.approx(acceptance)
    assert result.autocorrelation_time > 1.5
    assert result.effective_samples == pytest.approx(6 / result.autocorrelation_time)
    assert run(target, "hamming", num_chains=6, num_steps=60, noise=Noise(1), keep="last").effective_samples == 6


def test_advance_is_that_many_steps():
    target = fielded(3)
    start = init(Noise(0).integers(3, (40, 4)), target)
    state, noise, total = start, Noise(1), 0.0
    for _ in range(5):
        state, info = step(Categorical(), state, target, noise)
        total += float(info.acceptance.mean())
    after, acceptance = advance(Categorical(), start, target, Noise(1), 5)
    assert isinstance(after, ChainState)
    assert torch.equal(after.x, state.x)
    assert acceptance == pytest.approx(total / 5)
    with pytest.raises(InvalidArgumentError, match="steps is 0"):
        advance(Categorical(), start, target, Noise(1), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_chains": 0}, "num_chains is 0"),
        ({"num_steps": 2, "thin": 3}, "num_steps is 2; give at least 3"),
        ({"thin": 0}, "thin is 0"),
        ({"burn_in": -1}, "burn_in is -1"),
        ({"keep": "first"}, "keep is 'first'"),
        ({"x": torch.zeros(3, 5).long()}, "shape"),
        ({"x": torch.zeros(0, 4).long()}, "shape"),
        ({"x": torch.zeros(4).long()}, "shape"),
        ({"x": torch.full((3, 4), 3)}, r"integers in 0\.\.2"),
        ({"x": torch.full((3, 4), -1)}, r"integers in 0\.\.2"),
        ({"x": torch.zeros(3, 4)}, "float32"),
    ],
)
def test_wrong_arguments_are_refused(monkeypatch, arguments, message):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InvalidArgumentError, match=message):
        run(fielded(3), "gibbs", **arguments)


def test_one_category_is_refused():
    with pytest.raises(InvalidArgumentError, match="num_categories is 1"):
        run(Table(2, 1, torch.zeros(1, dtype=F64)), "hamming")


def test_chains_that_never_find_an_allowed_state_are_reported():
    log_p = torch.full((8,), -INF, dtype=F64)
    log_p[7] = 0.0
    target = Table(3, 2, log_p)
    with pytest.raises(InvalidArgumentError, match=r"of 64 chains still stand at a forbidden state"):
        run(target, "hamming", num_steps=1)
    assert (run(target, Categorical(0.5), num_steps=3, burn_in=200).samples == 1).all()
