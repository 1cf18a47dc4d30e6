"""Every kernel leaves its target invariant: exactly, on spaces that can be enumerated."""

from dataclasses import dataclass

import pytest
import torch

from mcmc_targets import COUPLING, EDGES, F64, INF, Coupled, Table, fielded, law, peaked_table, random, storages
from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.mcmc import KERNELS, Categorical, Gibbs, HammingBall, Proposal, SwendsenWang, init, make_kernel, run, step
from sabre.noise import Noise
from sabre.tape import all_states, transition_matrix
from sabre.targets import AbstractTarget


def matrix(kernel, target, move=step):
    """The transition matrix of the shipped step."""

    def code(x, noise):
        return move(kernel, init(x, target), target, noise)[0].x

    return transition_matrix(code, target.dim, target.num_categories)


def violation(moves, pi):
    """The largest breach of: rows sum to one, pi P = pi, detailed balance."""
    flow = pi.unsqueeze(1) * moves
    breaches = (moves.sum(1) - 1, pi @ moves - pi, flow - flow.t())
    return max(float(b.abs().max()) for b in breaches)


def reached(moves):
    """Which states can follow which, in any number of steps."""
    reach = torch.eye(len(moves), dtype=F64) + moves
    for _ in range(len(moves).bit_length()):
        reach = (reach @ reach > 0).double()
    return reach > 0


CASES = {
    "hamming": [(HammingBall(), peaked_table()), (HammingBall(), fielded(2)), (HammingBall(2), peaked_table())],
    "categorical": [(Categorical(), peaked_table()), (Categorical(0.3), fielded(2))],
    "gibbs": [(Gibbs(), peaked_table()), (Gibbs(), fielded(3)), (Gibbs(), fielded(2, hidden=True))],
    "swendsen-wang": [(SwendsenWang(), fielded(3)), (SwendsenWang(), fielded(2)), (SwendsenWang(), fielded(2, 0.0))],
}


def test_every_kernel_is_in_the_table():
    assert set(CASES) == set(KERNELS)
    for name, cases in CASES.items():
        assert type(make_kernel(name)) is type(cases[0][0])


def test_targets_are_peaked_and_asymmetric():
    for target in (peaked_table(), fielded(2), fielded(3)):
        pi = law(target)
        assert pi.max() > 4 / len(pi)
        assert (pi.log() - pi.flip(0).log()).abs().max() > 1
        assert len(pi.unique()) == len(pi)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_reversible_and_irreducible(name):
    for kernel, target in CASES[name]:
        moves = matrix(kernel, target)
        assert violation(moves, law(target)) < 1e-10
        assert reached(moves).all()


def test_an_even_radius_keeps_the_parity_of_two_categories():
    target = fielded(2)
    moves = matrix(HammingBall(2), target)
    assert violation(moves, law(target)) < 1e-10
    parity = all_states(4, 2).sum(1) % 2
    assert torch.equal(reached(moves), parity.unsqueeze(0) == parity.unsqueeze(1))


def test_proposals_are_those_of_the_paper():
    flat = Table(3, 3, torch.zeros(27, dtype=F64))
    states = all_states(3, 3)
    distance = (states.unsqueeze(1) != states.unsqueeze(0)).sum(2).double()
    one_change = (distance == 1).double() / 6
    assert torch.allclose(matrix(HammingBall(), flat), one_change, atol=1e-12)
    assert torch.allclose(matrix(HammingBall(3), flat), torch.linalg.matrix_power(one_change, 3), atol=1e-12)
    assert torch.allclose(matrix(Categorical(0.8), flat), 0.8 ** (3 - distance) * 0.1**distance, atol=1e-12)


def test_gibbs_finds_the_same_conditional_with_and_without_the_couplings():
    seen, hidden = fielded(3), fielded(3, hidden=True)
    assert torch.allclose(matrix(Gibbs(), seen), matrix(Gibbs(), hidden), atol=1e-12)


@dataclass(frozen=True)
class MistakenTarget:
    """The shipped kernel, shown another target than the one that is sampled."""

    kernel: object
    shown: AbstractTarget

    def propose(self, x, _target, noise):
        return self.kernel.propose(x, self.shown, noise)


@dataclass(frozen=True)
class StaleGibbs:
    """Looks at one site and writes to another."""

    def propose(self, x, target, noise):
        site = noise.integers(target.dim, (len(x),))
        value = noise.categorical(target.site_log_density(x, site))
        return Proposal(x.scatter(1, (site.unsqueeze(1) + 1) % target.dim, value.unsqueeze(1)), rejection_free=True)


@dataclass(frozen=True)
class Biased:
    """A site takes a value from a fixed law, whatever it held: not symmetric, so the correction counts."""

    sign: float = 1.0

    def propose(self, x, target, noise):
        log_q = torch.tensor([0.6, 0.3, 0.1], dtype=F64).log()
        site = noise.integers(target.dim, (len(x),)).unsqueeze(1)
        value = noise.categorical(log_q.expand(len(x), -1)).unsqueeze(1)
        correction = (log_q[x.gather(1, site)] - log_q[value]).squeeze(1)
        return Proposal(x.scatter(1, site, value), self.sign * correction)


def test_log_correction_makes_an_asymmetric_proposal_reversible():
    target = peaked_table()
    assert violation(matrix(Biased(), target), law(target)) < 1e-10


def test_wrong_twins_are_noticed():
    table, model = peaked_table(), fielded(3)
    negated = Table(3, 3, -table.log_p)
    half_bonds = MistakenTarget(SwendsenWang(), fielded(3, coupling=0.5))
    no_field = MistakenTarget(SwendsenWang(), fielded(3, scale=0.0))
    twins = {
        "bond probability 1 - exp(-coupling / 2)": (matrix(half_bonds, model), law(model)),
        "field ignored by the clusters": (matrix(no_field, model), law(model)),
        "difference with the wrong sign": (matrix(HammingBall(), negated), law(table)),
        "stale site": (matrix(StaleGibbs(), table), law(table)),
        "correction with the wrong sign": (matrix(Biased(-1.0), table), law(table)),
        "correction left out": (matrix(Biased(0.0), table), law(table)),
    }
    for name, (moves, pi) in twins.items():
        assert violation(moves, pi) > 1e-3, name


def with_forbidden_states():
    log_p = random(5, 27, scale=2.5)
    log_p[[0, 4, 13, 14, 26]] = -INF
    field = random(3, 4, 2)
    field[0, 0] = field[1, 1] = -INF
    table, model = Table(3, 3, log_p), Coupled(EDGES, COUPLING, field)
    kernels = [(HammingBall(), table), (HammingBall(2), table), (Categorical(), table), (Gibbs(), table)]
    return [*kernels, (Gibbs(), model), (SwendsenWang(), model)]


@pytest.mark.parametrize(("kernel", "target"), with_forbidden_states(), ids=lambda v: type(v).__name__)
def test_forbidden_states_are_never_entered(kernel, target):
    pi = law(target)
    moves = matrix(kernel, target)
    assert (moves[pi > 0][:, pi == 0] == 0).all()
    assert violation(moves, pi) < 1e-10


@dataclass(frozen=True)
class MoveTo:
    """Proposes the same states every time; hands out its own tensor."""

    x: torch.Tensor
    correction: torch.Tensor | None = None
    rejection_free: bool = False

    def propose(self, _x, _target, _noise):
        return Proposal(self.x, self.correction, self.rejection_free)


def test_acceptance_settles_infinities():
    target = Table(1, 4, torch.tensor([-INF, -INF, 0.0, -1.0], dtype=F64))
    old = torch.tensor([[0], [2], [0], [2], [3], [2], [0]])
    new = torch.tensor([[3], [0], [1], [3], [2], [3], [2]])
    correction = torch.tensor([0.0, INF, 0.0, 0.0, 0.0, 0.5, -INF], dtype=F64)
    expected = torch.tensor([0.0, -INF, -INF, -1.0, 0.0, -0.5, 0.0], dtype=F64).exp()
    state, info = step(MoveTo(new, correction), init(old, target), target, Noise(0))
    assert torch.allclose(info.acceptance, expected, atol=1e-12)
    assert torch.equal(state.x, torch.where(info.accepted.unsqueeze(1), new, old))
    assert torch.equal(state.log_density, target.log_density(state.x))


@pytest.mark.parametrize("name", KERNELS)
def test_inputs_are_not_mutated_and_outputs_not_aliased(name):
    target = fielded(3)
    x = Noise(1).integers(3, (50, 4))
    before = x.clone()
    state = init(x, target)
    density = state.log_density.clone()
    assert not storages(x) & storages(*state)
    for rejection_free in (False, True):
        for kernel in (make_kernel(name), MoveTo(before.flip(0), None, rejection_free)):
            after, _ = step(kernel, state, target, Noise(2))
            assert torch.equal(x, before)
            assert torch.equal(state.x, before)
            assert torch.equal(state.log_density, density)
            assert torch.allclose(after.log_density, target.log_density(after.x), atol=1e-12)
            assert not torch.equal(after.x, before)
            given = storages(x, *state, *([kernel.x] if isinstance(kernel, MoveTo) else []))
            assert not storages(*after) & given


def test_log_densities_are_kept_in_float64():
    target = Coupled(EDGES, COUPLING.float(), random(3, 4, 3).float())
    state = init(all_states(4, 3), target)
    for name in KERNELS:
        after, info = step(make_kernel(name), state, target, Noise(0))
        assert {state.log_density.dtype, after.log_density.dtype, info.acceptance.dtype} == {F64}


def test_without_edges_every_site_is_a_cluster():
    target = Coupled([], torch.zeros(0, dtype=F64), random(3, 3, 2))
    assert torch.allclose(matrix(SwendsenWang(), target), law(target).expand(8, -1), atol=1e-12)


def test_swendsen_wang_refuses_what_it_cannot_sample():
    x = torch.zeros(2, 4, dtype=torch.long)
    with pytest.raises(InvalidArgumentError, match=r"'coupled' has none; use 'gibbs'"):
        SwendsenWang().propose(x, fielded(2, hidden=True), Noise(0))
    with pytest.raises(InvalidArgumentError, match=r"has -1.1; use 'gibbs'"):
        SwendsenWang().propose(x, fielded(2, coupling=-1.0), Noise(0))


def test_wrong_options_and_names_are_refused():
    with pytest.raises(InvalidArgumentError, match="radius is 0"):
        HammingBall(0)
    for keep in (0.0, 1.0):
        with pytest.raises(InvalidArgumentError, match="keep is"):
            Categorical(keep)
    with pytest.raises(UnknownNameError, match="Did you mean 'gibbs'"):
        make_kernel("gibs")
    with pytest.raises(UnknownNameError, match="kernel"):
        run(fielded(2), "metropolis")
