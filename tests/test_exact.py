"""The truth that targets carry, against published values, enumeration, the Tape and frequencies."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from sabre.noise import Noise
from sabre.tape import all_states, enumerate_outcomes
from sabre.targets import GMM40, Ising, ManyWell, Potts, gray_to_integer, integer_to_gray, torus_edges
from sabre.targets.enumeration import enumerated_log_density
from sabre.targets.kaufman import kaufman_log_z
from sabre.targets.transfer import transfer_log_z

PUBLISHED = json.loads((Path(__file__).parent / "data" / "exact.json").read_text())

ENUMERABLE = [
    Ising(2, 0.7),
    Ising(3, 0.4407),
    Ising(3, 0.3, field=-0.9),
    Ising(3, 0.5, coupling=-1.0),
    Ising(3, 0.5, coupling=-1.3, field=0.2),
    Ising(4, 0.4407),
    Ising(4, 0.9, coupling=-1.0),
    Ising(4, 0.6, coupling=0.5, field=0.3),
    Potts(2, 2, 0.8, field=[0.4, -0.1]),
    Potts(2, 3, 1.1),
    Potts(2, 3, 1.1, coupling=-0.6, field=[0.5, -1.0, 0.2]),
    Potts(3, 2, 0.9, field=[0.3, -0.2]),
    Potts(3, 3, 1.0, field=[0.5, -1.0, 0.2]),
    GMM40(1, bits=8),
    GMM40(2, seed=3, bits=4),
    ManyWell(2, bits=4),
    ManyWell(2, rotated=False, bits=5),
    ManyWell(4, bits=3),
]


def log_normaliser(target):
    return float(enumerated_log_density(target.log_density, target.dim, target.num_categories).logsumexp(0))


@pytest.mark.parametrize(("size", "beta"), [(s, b) for s, row in PUBLISHED["ising"].items() for b in row])
def test_ising_log_z_is_the_published_one(size, beta):
    published = PUBLISHED["ising"][size][beta]
    assert Ising(int(size), float(beta)).log_z_exact == pytest.approx(published, rel=1e-8)
    assert Ising(int(size), float(beta) + 1e-6).log_z_exact != pytest.approx(published, rel=1e-8)


@pytest.mark.parametrize(("size", "beta"), [(s, b) for s, row in PUBLISHED["potts_q3"].items() for b in row])
def test_potts_log_z_is_the_published_one(size, beta):
    published = PUBLISHED["potts_q3"][size][beta]
    assert Potts(int(size), 3, float(beta)).log_z_exact == pytest.approx(published, abs=1e-6)
    assert Potts(int(size), 3, float(beta) + 1e-6).log_z_exact != pytest.approx(published, abs=1e-6)


def test_gray_coded_log_z_is_the_published_one():
    assert ManyWell(4).log_z_exact == pytest.approx(PUBLISHED["manywell_rotated"]["d32_D4"], abs=1e-6)
    assert ManyWell(10).log_z_exact == pytest.approx(PUBLISHED["manywell_rotated"]["d80_D10"], abs=1e-6)
    assert ManyWell(4, rotated=False).log_z_exact != pytest.approx(PUBLISHED["manywell_rotated"]["d32_D4"], abs=1e-6)
    assert -3e-5 < GMM40(2).log_z_exact < 0
    assert -8e-5 < GMM40(4).log_z_exact < 0


@pytest.mark.parametrize("target", ENUMERABLE, ids=repr)
def test_closed_form_log_z_is_that_of_the_enumeration(target):
    truth = log_normaliser(target)
    assert target.closed_form_log_z() == pytest.approx(truth, abs=1e-10, rel=1e-12)
    # The same target with one state removed is another one, and the check sees it.
    ranks = enumerated_log_density(target.log_density, target.dim, target.num_categories)
    assert target.closed_form_log_z() != pytest.approx(float(ranks.sort()[0][:-1].logsumexp(0)), abs=1e-10, rel=1e-12)


@pytest.mark.parametrize("coupling", [1e-9, 0.01, math.log(1 + 2**0.5) / 2, 3.0, 40.0, -0.4, -40.0])
def test_kaufman_is_stable_at_every_temperature(coupling):
    assert kaufman_log_z(4, coupling) == pytest.approx(log_normaliser(Ising(4, coupling)), rel=1e-12)


def test_kaufman_is_a_smooth_convex_function_at_every_size():
    """log Z(K) has the slope 2 L^2 tanh(K) at most and is convex; terms that cancel must not make it NaN."""
    grid = [0.005 * k for k in range(1, 120)]
    for size in (7, 8, 12, 16, 24, 32, 64):
        values = np.array([kaufman_log_z(size, coupling) for coupling in grid])
        assert np.isfinite(values).all()
        slopes = np.diff(values) / 0.005
        assert (np.diff(slopes) > 0).all()
        assert slopes[0] == pytest.approx(2 * size**2 * 0.0075, rel=1e-2)
        assert slopes[-1] < 2 * size**2
    assert kaufman_log_z(16, 1e-310) == 256 * math.log(2)


def test_kaufman_in_its_limits():
    assert kaufman_log_z(5, 0.0) == 25 * math.log(2)
    assert kaufman_log_z(5, -0.1) is None
    assert Ising(5, 0.1, coupling=-1.0).log_z_exact == pytest.approx(25 * math.log(2), rel=0.02)
    for coupling in (99.9, 100.1, 1000.0):
        assert kaufman_log_z(16, coupling) == pytest.approx(2 * 256 * coupling + math.log(2), rel=1e-14)
    onsager = 0.9296953983416  # (log 2) / 2 + 2 G / pi, the free energy per site of the infinite critical lattice
    assert kaufman_log_z(1000, math.log(1 + 2**0.5) / 2) / 1000**2 == pytest.approx(onsager, abs=2e-6)


@pytest.mark.parametrize("size", [5, 8])
def test_transfer_matrix_and_kaufman_agree_beyond_enumeration(size):
    transferred = transfer_log_z(size, 2 * 0.4407, torch.zeros(2)) - 0.4407 * 2 * size**2
    assert transferred == pytest.approx(kaufman_log_z(size, 0.4407), abs=1e-10)
    assert transferred != pytest.approx(kaufman_log_z(size, 0.44071), abs=1e-10)
    assert Ising(16, 0.3, field=0.1).log_z_exact is None
    assert Potts(9, 3, 1.0).log_z_exact is None


@pytest.mark.parametrize("target", [t for t in ENUMERABLE if t.pairwise is not None], ids=repr)
def test_pairwise_form_is_the_density_and_its_local_field_the_conditional(target):
    x = all_states(target.dim, target.num_categories)
    x = x[torch.arange(len(x)) * 37 % len(x)][:600]
    assert torch.allclose(target.log_density(x), target.pairwise.log_density(x), atol=1e-10)
    site = torch.arange(len(x)) % target.dim
    conditional = target.site_log_density(x, site).log_softmax(-1)
    local = target.pairwise.local_field(x, site.unsqueeze(1)).squeeze(1).log_softmax(-1)
    assert torch.allclose(conditional, local, atol=1e-10)
    moved = target.pairwise.local_field(x, (site.unsqueeze(1) + 1) % target.dim).squeeze(1).log_softmax(-1)
    assert not torch.allclose(conditional, moved, atol=1e-2)


def test_every_site_of_the_torus_has_four_bonds_and_a_torus_of_side_two_has_double_ones():
    for size in (2, 3, 5):
        edges = torus_edges(size)
        assert edges.shape == (2 * size**2, 2)
        assert (torch.bincount(edges.flatten()) == 4).all()
    doubled, times = torus_edges(2).sort(1)[0].unique(dim=0, return_counts=True)
    assert len(doubled) == 4
    assert (times == 2).all()


def law(target):
    return target.log_density(all_states(target.dim, target.num_categories)).softmax(0)


def rank(x, num_categories):
    return x @ num_categories ** torch.arange(x.shape[1] - 1, -1, -1)


def law_of(sampler, target):
    """The exact law of a sampler, by enumeration of its draws."""
    outcomes = enumerate_outcomes(lambda x, tape: sampler(len(x), tape), all_states(1, 2)[:1])
    p = torch.zeros(target.num_categories**target.dim, dtype=torch.float64)
    return p.index_add_(0, rank(outcomes.value, target.num_categories), outcomes.probability)


@pytest.mark.parametrize(
    "target", [GMM40(1, bits=2), GMM40(2, seed=1, bits=2), ManyWell(2, bits=2), ManyWell(4, False, bits=2)], ids=repr
)
def test_samplers_of_gray_coded_targets_have_exactly_their_law(target):
    assert torch.allclose(law_of(target.closed_form_sample, target), law(target), atol=1e-10)


def test_a_mixture_sampler_that_forgets_the_mass_on_the_grid_is_noticed():
    target = GMM40(1, bits=2)
    cells = target._log_cells()

    def uniform_component(n, noise):
        return target.grid.encode_integers(noise.categorical(cells[noise.index(torch.zeros(40), n)]))

    assert not torch.allclose(law_of(uniform_component, target), law(target), atol=1e-3)


def tv_and_bound(x, target, p):
    """Total variation of the frequencies from p, and what p itself stays below but for once in 10^5.

    E TV <= 1/2 sum sqrt(p (1 - p) / n), and one sample moves TV by 1/n at most (McDiarmid: exp(-2 n t^2)).
    """
    n = len(x)
    frequency = torch.bincount(rank(x, target.num_categories), minlength=len(p)) / n
    bound = 0.5 * (p * (1 - p) / n).sqrt().sum() + math.sqrt(math.log(1e5) / (2 * n))
    return float((frequency - p).abs().sum() / 2), float(bound)


@pytest.mark.parametrize(
    ("target", "twin"),
    [
        (GMM40(1, bits=8), GMM40(1, seed=1, bits=8)),
        (ManyWell(2, bits=4), ManyWell(2, rotated=False, bits=4)),
        (Ising(3, 0.3, field=0.4), Ising(3, 0.3, field=0.3)),
        (Potts(2, 3, 0.5, field=[0.5, -1.0, 0.2]), Potts(2, 3, 0.5, field=[0.5, 0.2, -1.0])),
    ],
    ids=repr,
)
def test_exact_samples_follow_the_law_and_those_of_a_twin_do_not(target, twin):
    n = 100_000
    distance, bound = tv_and_bound(target.sample(n, Noise(1)), target, law(target))
    assert distance < bound < 0.06
    assert tv_and_bound(twin.sample(n, Noise(1)), target, law(target))[0] > 1.5 * bound


def test_gray_code_is_the_table_of_the_paper():
    table = ["000", "001", "011", "010", "110", "111", "101", "100"]
    assert ["".join(map(str, row)) for row in integer_to_gray(torch.arange(8), 3).tolist()] == table


@pytest.mark.parametrize("bits", [1, 3, 8])
def test_gray_code_is_a_bijection_whose_neighbours_differ_in_one_bit(bits):
    k = torch.arange(2**bits)
    code = integer_to_gray(k, bits)
    assert len(code.unique(dim=0)) == len(k)
    assert torch.equal(gray_to_integer(code), k)
    assert ((code[1:] != code[:-1]).sum(1) == 1).all()


def test_cells_are_decoded_to_their_centres_axis_by_axis():
    grid = GMM40(2, bits=8).grid
    k = torch.tensor([[0, 255], [128, 3]])
    x = grid.encode_integers(k)
    assert torch.equal(x[:, 8:], integer_to_gray(k[:, 1], 8))
    expected = (k.double() + 0.5) / 256 * 100 - 50
    assert torch.allclose(grid.decode(x), expected, atol=1e-12)
    assert grid.layout.coords[8:10].tolist() == [[1, 0], [1, 1]]


def test_means_of_the_mixture_are_those_of_the_seeded_stream():
    with torch.random.fork_rng():
        torch.manual_seed(7)
        expected = torch.rand(40, 2) * 94 - 47
    assert torch.equal(GMM40(2, seed=7).means, expected.double())
    assert not torch.equal(GMM40(2, seed=8).means, expected.double())
