"""Oracles beyond enumeration: derivatives of log Z, wide transfer matrices, elimination of sites one by one."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch

from sabre.cli.main import main
from sabre.errors import TargetError
from sabre.noise import Noise
from sabre.tape import all_states, enumerate_outcomes
from sabre.targets import CheckedTarget, Ising, ManyWell, Pairwise, Potts, Target, torus_edges
from sabre.targets.elimination import (
    LARGEST_TABLE,
    EliminationOrder,
    elimination_log_z,
    elimination_sample,
    treewidth_order,
)
from sabre.targets.kaufman import kaufman_log_z, kaufman_moments
from sabre.targets.transfer import transfer_log_z

PUBLISHED = json.loads((Path(__file__).parent / "data" / "exact.json").read_text())
CRITICAL = math.log(1 + 2**0.5) / 2
NO_FIELD = torch.zeros(2)


def moments_by_enumeration(target):
    """(E H, beta^2 Var H) of a lattice whose density at beta = 1 is -H."""
    unit = type(target)(**{k: 1.0 if k == "beta" else v for k, v in target.spec.items() if k != "name"})
    energy = -unit.log_density(all_states(target.dim, target.num_categories))
    p = (-target.beta * energy).softmax(0)
    mean = float(p @ energy)
    return mean, float(target.beta**2 * (p @ (energy - mean) ** 2))


# ---- Kaufman's formula and its derivatives ----


@pytest.mark.parametrize("beta", PUBLISHED["ising_mean_energy"]["16"])
def test_mean_energy_is_the_published_one(beta):
    published = PUBLISHED["ising_mean_energy"]["16"][beta]
    assert Ising(16, float(beta)).exact_energy().mean_energy == pytest.approx(published, rel=1e-9)
    assert Ising(16, float(beta) + 1e-6).exact_energy().mean_energy != pytest.approx(published, rel=1e-9)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("coupling", [-0.4, 1e-12, 0.01, 0.3, CRITICAL, 0.5, 1.0, 2.0, 40.0])
def test_formula_transfer_matrix_and_enumeration_agree(size, coupling):
    if size == 3 and coupling < 0:
        assert kaufman_log_z(size, coupling) is kaufman_moments(size, coupling) is None
        return
    energy = -Ising(size, 1.0).log_density(all_states(size**2, 2))
    log_z = float((-coupling * energy).logsumexp(0))
    assert kaufman_log_z(size, coupling) == pytest.approx(log_z, rel=1e-13)
    assert transfer_log_z(size, 2 * coupling, NO_FIELD) - 2 * size**2 * coupling == pytest.approx(log_z, rel=1e-13)
    p = (-coupling * energy).softmax(0)
    moments = kaufman_moments(size, coupling)
    assert moments.first == pytest.approx(-float(p @ energy), rel=1e-12)
    assert moments.second == pytest.approx(float(p @ (energy + moments.first) ** 2), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("size", [4, 5, 16])
@pytest.mark.parametrize("coupling", [0.01, 0.28, CRITICAL - 1e-9, CRITICAL, CRITICAL + 1e-9, 0.6, 1.2])
def test_moments_are_the_slopes_of_log_z(size, coupling):
    """Central differences of the fourth order, of log Z for the first and of the first for the second."""

    def slope(function, h=1e-3):
        near, far = (function(coupling + d) - function(coupling - d) for d in (h, 2 * h))
        return (8 * near - far) / (12 * h)

    moments = kaufman_moments(size, coupling)
    assert moments.first == pytest.approx(slope(lambda k: kaufman_log_z(size, k)), rel=1e-8)
    assert moments.second == pytest.approx(slope(lambda k: kaufman_moments(size, k).first), rel=1e-6)
    assert moments.second != pytest.approx(slope(lambda k: kaufman_moments(size, k + 1e-4).first), rel=1e-6)


def test_moments_in_their_limits():
    for size, bonds in ((2, 16), (3, 18), (16, 512)):
        assert kaufman_moments(size, 0.0) == (0.0, bonds)
        assert kaufman_moments(size, 1e-12) == pytest.approx((bonds * 1e-12, bonds), rel=1e-12)
        assert kaufman_moments(size, 2e-9) == pytest.approx((bonds * 2e-9, bonds), rel=1e-6)
    for coupling in (4.95, 10.0, 99.0, 300.0, 1e4):
        assert kaufman_moments(16, coupling) == pytest.approx((512.0, 0.0), rel=1e-12, abs=1e-12)
        assert kaufman_moments(16, coupling).second >= 0
    mean, variance = kaufman_moments(16, CRITICAL)
    assert kaufman_moments(16, -CRITICAL) == (-mean, variance)
    with torch.inference_mode():
        assert kaufman_moments(16, CRITICAL) == (mean, variance)


@pytest.mark.parametrize(
    "target",
    [
        Ising(2, 0.7),
        Ising(4, 0.4407, coupling=1.7),
        Ising(4, 0.4407, coupling=-1.7),
        Ising(3, -0.5),
        Ising(3, 0.4, coupling=0.8, field=-0.3),
        Ising(4, 0.0),
        Ising(3, 0.0, field=0.7),
        Potts(2, 3, 0.8, coupling=-0.6, field=[0.5, -1.0, 0.2]),
        Potts(3, 3, 0.0),
        Potts(3, 3, 1.1),
    ],
    ids=repr,
)
def test_energy_and_heat_capacity_are_those_of_the_enumeration(target):
    found = target.exact_energy()
    assert found == pytest.approx(moments_by_enumeration(target), rel=1e-9, abs=1e-12)
    assert CheckedTarget(target).exact_energy() == found
    hotter = {"beta": target.beta + 1e-3}
    twin = type(target)(**{k: v for k, v in (target.spec | hotter).items() if k != "name"})
    assert found != pytest.approx(moments_by_enumeration(twin), rel=1e-9, abs=1e-12)


def test_energies_that_nobody_knows_are_none():
    for target in (Ising(5, 0.4, coupling=-1.0), Ising(6, 0.4, field=0.1), Potts(4, 3, 1.0), ManyWell(2, bits=3)):
        assert target.exact_energy() is None


# ---- the transfer matrix ----


def test_transfer_matrices_of_wide_rows():
    """Against Kaufman's formula without a field; and in a field without couplings, where the sites are free."""
    assert transfer_log_z(12, 0.8, NO_FIELD) - 0.4 * 288 == pytest.approx(kaufman_log_z(12, 0.4), rel=1e-13)
    free = Ising(12, 0.5, coupling=0.0, field=0.7)
    assert free.log_z_exact == pytest.approx(144 * math.log(2 * math.cosh(0.35)), rel=1e-13)
    field = torch.tensor([0.5, -1.0, 0.2], dtype=torch.float64)
    assert transfer_log_z(8, 0.0, field) == pytest.approx(64 * float(field.logsumexp(0)), rel=1e-13)
    assert transfer_log_z(8, 1e-9, field) != pytest.approx(64 * float(field.logsumexp(0)), rel=1e-13)


def test_transfer_matrix_and_elimination_agree_where_nothing_is_symmetric():
    for target in (
        Ising(5, 0.4, coupling=-1.2, field=0.3),
        Ising(6, 0.3, coupling=-1.0, field=-0.4),
        Potts(4, 3, 0.9, field=[0.3, -0.6, 0.1]),
        Potts(5, 3, -0.7),
        Potts(3, 5, 0.8, coupling=-2.0, field=[0.1, 0.4, -0.2, 0.0, 0.3]),
    ):
        assert target.closed_form_log_z() == pytest.approx(elimination_log_z(target.pairwise), rel=1e-13)


def test_a_frustrated_torus_near_zero_temperature_is_refused_rather_than_wrong():
    cold = Ising(3, 60.0, coupling=-1.0)
    assert cold.closed_form_log_z() == pytest.approx(elimination_log_z(cold.pairwise), rel=1e-13)
    for beta in (100.0, 140.0, 300.0):
        assert Ising(3, beta, coupling=-1.0).closed_form_log_z() is None
        assert Ising(3, beta, coupling=-1.0).log_z_source == "enumeration"
        assert Ising(5, beta, coupling=-1.0).log_z_source == "elimination"


# ---- elimination ----


def random_model(dim, categories, seed, density=0.4, forbidden=0.2):
    """Couplings of both signs on a random graph with double edges, some values of some sites forbidden."""
    noise = Noise(seed)
    pairs = torch.tensor(list(itertools.combinations(range(dim), 2)), dtype=torch.long).reshape(-1, 2)
    edges = pairs[noise.bernoulli(torch.full((len(pairs),), density))]
    edges = torch.cat([edges, edges[:2].flip(1)])
    field = noise.normal((dim, categories))
    banned = noise.bernoulli(torch.full((dim, categories), forbidden))
    banned[:, 0] = False
    return Pairwise(edges, 1.5 * noise.normal((len(edges),)), field.masked_fill(banned, -torch.inf), 0.7)


MODELS = {
    "peaked": random_model(7, 3, 0),
    "dense": random_model(9, 2, 1, density=0.9),
    "three colours": random_model(8, 3, 2),
    "four colours": random_model(5, 4, 3, density=0.7),
    "disconnected": random_model(10, 2, 4, density=0.12),
    "one site": random_model(1, 3, 5),
    "no edges": random_model(4, 2, 6, density=0.0),
    "loop": Pairwise(torch.tensor([[0, 0], [0, 1]]), torch.tensor([1.0, -1.5]).double(), torch.eye(2).double()),
    "torus of side two": Ising(2, 0.7, field=0.3).pairwise,
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_elimination_is_enumeration(model):
    truth = float(model.log_density(all_states(model.dim, model.num_categories)).logsumexp(0))
    assert elimination_log_z(model) == pytest.approx(truth, abs=1e-11)
    shifted = Pairwise(model.edges, model.coupling + 1e-3, model.field + 1e-3, model.constant)
    assert elimination_log_z(shifted) != pytest.approx(truth, abs=1e-5)
    any_order = EliminationOrder(tuple(range(model.dim)), model.dim)
    assert elimination_log_z(model, any_order) == pytest.approx(truth, abs=1e-11)


def law_of_samples(model, sampled_from):
    outcomes = enumerate_outcomes(
        lambda x, tape: elimination_sample(sampled_from, len(x), tape), torch.zeros(1, 1, dtype=torch.long)
    )
    place = model.num_categories ** torch.arange(model.dim - 1, -1, -1)
    law = torch.zeros(model.num_categories**model.dim, dtype=torch.float64)
    return law.index_add_(0, outcomes.value @ place, outcomes.probability)


@pytest.mark.parametrize("name", ["peaked", "three colours", "disconnected", "one site", "torus of side two"])
def test_samples_of_elimination_have_exactly_their_law(name):
    model = MODELS[name]
    law = model.log_density(all_states(model.dim, model.num_categories)).softmax(0)
    assert torch.allclose(law_of_samples(model, model), law, rtol=0, atol=1e-10)
    twin = Pairwise(model.edges, model.coupling, model.field.flip(0).roll(1, 1), model.constant)
    assert not torch.allclose(law_of_samples(model, twin), law, atol=1e-3)


@pytest.mark.parametrize("coupling", [-0.3, 0.3, CRITICAL, 2.0, 30.0])
def test_elimination_of_an_eight_by_eight_torus_is_the_formula(coupling):
    model = Ising(8, coupling).pairwise
    assert treewidth_order(model).width == 16
    assert elimination_log_z(model) == pytest.approx(kaufman_log_z(8, coupling), abs=1e-9)
    assert elimination_log_z(Ising(8, coupling + 1e-9).pairwise) != pytest.approx(kaufman_log_z(8, coupling), abs=1e-10)


def test_samples_of_an_eight_by_eight_torus_have_the_exact_mean_energy():
    """4.5 standard errors, from the exact variance; the energy at another temperature is outside of them."""
    n, target = 4000, Ising(8, 0.44)
    exact = target.exact_energy()
    bound = 4.5 * (exact.heat_capacity / n) ** 0.5 / target.beta
    x = target.sample(n, Noise(0))
    assert abs(float(-target.log_density(x).mean() / target.beta) - exact.mean_energy) < bound
    twin = Ising(8, 0.43).sample(n, Noise(0))
    assert abs(float(-target.log_density(twin).mean() / target.beta) - exact.mean_energy) > 1.5 * bound
    assert abs(float(target.phase(x).double().mean()) - 0.5) < 4.5 * 0.5 / n**0.5


def test_a_random_binary_model_agrees_with_the_tree_decomposition_of_dwave():
    """exp(-E) with E = sum h s + sum J s s: 1[x_i = x_j] is (1 + s_i s_j) / 2."""
    dimod, samplers = pytest.importorskip("dimod"), pytest.importorskip("dwave.samplers")
    noise, dim = Noise(8), 40
    edges = torch.tensor([(i, j) for i in range(dim) for j in (i + 1, i + 4) if j < dim])
    h, j = noise.normal((dim,)), noise.normal((len(edges),))
    model = Pairwise(edges, -2 * j, torch.stack([h, -h], 1), float(j.sum()))
    pairs = {tuple(e): c for e, c in zip(edges.tolist(), j.tolist(), strict=True)}
    other = dimod.BinaryQuadraticModel.from_ising(dict(enumerate(h.tolist())), pairs)
    info = samplers.TreeDecompositionSampler().sample(other, beta=1.0, num_reads=1, marginals=True).info
    assert elimination_log_z(model) == pytest.approx(info["log_partition_function"], abs=1e-9)
    one_less = Pairwise(edges[1:], model.coupling[1:], model.field, model.constant)
    assert elimination_log_z(one_less) != pytest.approx(info["log_partition_function"], abs=1e-2)


def test_the_order_of_a_wide_model_is_given_up():
    assert treewidth_order(Pairwise(torus_edges(64), torch.ones(8192), torch.zeros(4096, 2))) is None
    clique = torch.tensor(list(itertools.combinations(range(40), 2)))
    for categories, largest in ((2, 20), (3, 12), (32, 4)):
        assert categories**largest <= LARGEST_TABLE < categories ** (largest + 1)
        for size in (largest, largest + 1):
            edges = clique[(clique < size).all(1)]
            order = treewidth_order(Pairwise(edges, torch.ones(len(edges)), torch.zeros(size, categories)))
            assert (order is None) == (size > largest)
            assert order is None or (sorted(order.sites), order.width) == ([*range(size)], size - 1)
    cliques = [clique[(clique < 20).all(1)] + 20 * k for k in range(17)]
    for count in (16, 17):
        edges = torch.cat(cliques[:count])
        order = treewidth_order(Pairwise(edges, torch.ones(len(edges)), torch.zeros(20 * count, 2)))
        assert (order is None) == (count > 16)
    wide = Ising(16, 0.4, field=0.1)
    assert elimination_log_z(wide.pairwise) is elimination_sample(wide.pairwise, 3, Noise(0)) is None
    assert wide.log_z_exact is wide.sample(3, Noise(0)) is None
    assert wide.log_z_source == "unknown"


def test_couplings_of_zero_are_no_edges():
    free = Ising(64, 0.4, coupling=0.0, field=0.5)
    assert treewidth_order(free.pairwise).width == 0
    assert free.log_z_exact == pytest.approx(4096 * math.log(2 * math.cosh(0.2)), rel=1e-12)
    assert free.log_z_source == "elimination"


def chain(dim, categories, constant, forbidden=()):
    """A user's target on a line, whose function is `constant` above what its couplings and fields say."""
    field = Noise(1).normal((dim, categories))
    for site, value in forbidden:
        field[site, value] = -torch.inf
    edges = torch.stack([torch.arange(dim - 1), torch.arange(1, dim)], 1)
    model = Pairwise(edges, Noise(2).normal((dim - 1,)), field)
    return Target(lambda x: model.log_density(x) + constant, dim, categories, pairwise=model)


def test_the_fallback_counts_the_constant_between_function_and_couplings():
    small, large = chain(6, 3, 5.0, [(2, 1)]), chain(40, 3, 5.0, [(2, 1)])
    assert (small.log_z_source, large.log_z_source) == ("enumeration", "elimination")
    assert small.log_z_exact == pytest.approx(elimination_log_z(small.pairwise) + 5.0, abs=1e-11)
    assert large.log_z_exact == pytest.approx(elimination_log_z(large.pairwise) + 5.0, abs=1e-11)
    checked = CheckedTarget(large)
    assert (checked.log_z_exact, checked.log_z_source) == (large.log_z_exact, "elimination")
    x = checked.sample(500, Noise(0))
    assert torch.equal(x, large.sample(500, Noise(0)))
    assert (x[:, 2] != 1).all()
    assert checked.num_evaluations == 0


def test_a_model_that_forbids_everything_has_no_samples():
    nothing = chain(40, 3, 0.0, [(2, c) for c in range(3)])
    assert nothing.log_z_exact == -math.inf
    with pytest.raises(TargetError, match="forbids all states"):
        nothing.sample(3, Noise(0))


# ---- the command line ----


def test_exact_prints_the_energies_that_are_known(capsys):
    assert main(["exact", "ising", "--size", "16", "--beta", "0.6"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == ["mean energy   -488.7260608", "heat capacity 80.24203711"]
    assert main(["exact", "ising", "--size", "16", "--beta", "0.6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    exact = Ising(16, 0.6).exact_energy()
    assert (found["mean_energy"], found["heat_capacity"]) == exact
    assert main(["exact", "potts", "--size", "9", "--q", "3", "--beta", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["log_z_exact"] is found["mean_energy"] is found["heat_capacity"] is None
    assert main(["exact", "ising", "--size", "64", "--beta", "1", "--coupling", "0", "--field", "0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "elimination"
