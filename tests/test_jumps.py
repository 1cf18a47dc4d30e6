"""Annealed jumps and their locally equivariant network, exactly: by enumeration, in float64, on small spaces."""

import functools
import math

import pytest
import torch

from sabre.errors import InvalidArgumentError
from sabre.networks.equivariant import EquivariantNetwork
from sabre.networks.jump import JumpNetwork
from sabre.noise import Noise
from sabre.processes.jumps import (
    AnnealedJumps,
    Moments,
    conditional,
    flow,
    growth,
    independent_sites,
    resample,
    site_kernel,
)
from sabre.tape import Tape, all_states, enumerate_outcomes
from sabre.targets import AbstractTarget, Ising, Layout
from small import PeakedTarget, grid_layout, randomised

LAYOUTS = {
    "torus": grid_layout(2, 3),
    "transposed": Layout("torus", (2, 3), torch.tensor([(i % 2, i // 2) for i in range(6)])),
    "code": Layout("code", (3, 2), torch.cartesian_prod(torch.arange(3), torch.arange(2))),
    "line": Layout("line", (6,), torch.arange(6).unsqueeze(1)),
}


def network(target, layout=None, *, num_steps=2, kappa=0.7, resample_below=0.0, scale=0.5, **options):
    layout = layout or target.layout
    module = EquivariantNetwork(layout, target.num_categories, Noise(3), width=6, depth=2, absolute=True, **options)
    process = AnnealedJumps(num_steps, kappa, resample_below=resample_below)
    return randomised(JumpNetwork(target, module, process, 10**6), scale=scale)


def local(net, x, t):
    """(G, log m) of all sites."""
    times, sites = torch.full((len(x),), t, dtype=torch.float64), torch.arange(x.shape[1])
    with torch.no_grad():
        potential, log_m = net._local(x, times, sites)
    return potential, log_m


def changed(x, site, value):
    y = x.clone()
    y[:, site] = value
    return y


@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_network_is_locally_equivariant(layout, categories, window):
    """U_i does not move when x_i does, so G(b, i | x) = -G(x_i, i | x with x_i = b); all the others do."""
    net = network(PeakedTarget(6, categories), LAYOUTS[layout], window=window)
    x = all_states(6, categories)[::5]
    potential, _ = local(net, x, 0.6)
    here = flow(potential, x)
    assert float(here.abs().max()) > 0.1
    for site in range(6):
        for value in range(categories):
            y = changed(x, site, value)
            moved, _ = local(net, y, 0.6)
            assert torch.allclose(moved[:, site], potential[:, site], atol=1e-12)
            back = flow(moved, y)[:, site].gather(1, x[:, site : site + 1]).squeeze(1)
            assert torch.allclose(here[:, site, value], -back, atol=1e-12)
            if window == 0:
                others = (moved - potential).abs().amax((0, 2)) > 1e-6
                assert others.sum() == 5


def seen_from(shape, site, **options):
    """Which sites change U of one site, and whether all of them have weights of their own."""
    dim = math.prod(shape)
    module = randomised(EquivariantNetwork(grid_layout(*shape), 2, Noise(3), width=6, depth=0, **options))
    times, field = torch.full((dim + 1,), 0.5), torch.zeros(dim + 1, 1, 2, dtype=torch.float64)
    x = torch.cat([torch.zeros(1, dim).long(), torch.eye(dim).long()])
    with torch.no_grad():
        potential = module(x, times, torch.tensor([site]), field)[:, 0, 0]
    change = potential[1:] - potential[0]
    return set(change.abs().gt(1e-9).nonzero().flatten().tolist()), len(change.unique())


@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (4, 5), (1, 4), (2, 2)])
def test_the_window_reaches_every_other_site_once(shape):
    dim = math.prod(shape)
    for site in range(dim):
        seen, distinct = seen_from(shape, site)
        assert seen == set(range(dim)) - {site}
        assert distinct == dim
    assert seen_from((4, 5), 0, window=3)[0] == {1, 4, 5, 6, 9, 15, 16, 19}


@pytest.mark.parametrize("categories", [2, 3])
def test_the_conditional_is_in_detailed_balance(categories):
    target, x, t = PeakedTarget(3, categories), all_states(3, categories), 0.7
    log_m = conditional(target.pairwise.local_field(x, torch.arange(3).expand(len(x), -1)), torch.full((len(x),), t))
    assert torch.allclose(log_m.logsumexp(-1), torch.zeros(1, dtype=torch.float64), atol=1e-12)
    for site in range(3):
        for value in range(categories):
            forth = t * target.log_density(x) + log_m[:, site, value]
            back = t * target.log_density(changed(x, site, value))
            back = back + log_m[:, site].gather(1, x[:, site : site + 1]).squeeze(1)
            assert torch.allclose(forth, back, atol=1e-6)


@pytest.mark.parametrize("categories", [2, 3])
def test_growth_is_what_the_jumps_of_the_master_equation_bring(categories):
    """K = sum_y Q(y -> x) rho(y) / rho(x) - Q(x -> y) with Q = ([G]_+ + kappa) m, and sum_x rho K = 0."""
    target, x, t, kappa = PeakedTarget(3, categories), all_states(3, categories), 0.7, 1.3
    net = network(target)
    potential, log_m = local(net, x, t)
    k = growth(flow(potential, x), log_m)
    rho = (t * target.log_density(x)).exp()
    assert abs(float((rho * k).sum())) < 1e-10 * float(rho.sum())
    brought = torch.zeros_like(rho)
    for site in range(3):
        for value in range(categories):
            y = changed(x, site, value)
            there, log_m_y = local(net, y, t)
            back = flow(there, y)[:, site].gather(1, x[:, site : site + 1]).squeeze(1).relu() + kappa
            back = back * log_m_y[:, site].gather(1, x[:, site : site + 1]).squeeze(1).exp()
            ratio = (t * (target.log_density(y) - target.log_density(x))).exp()
            out = (flow(potential, x)[:, site, value].relu() + kappa) * log_m[:, site, value].exp()
            brought += back * ratio - out
    assert torch.allclose(brought, k, atol=1e-10)


def random_site(categories, seed=5):
    noise = Noise(seed)
    potential, log_m = noise.normal((7, 3, categories)), noise.normal((7, 3, categories)).mul(2).log_softmax(-1)
    return potential, log_m


def kernel_matrix(potential, log_m, dt, kappa):
    """p(a -> b) on the last two axes."""
    columns = torch.arange(potential.shape[-1])
    start = [torch.full(potential.shape[:2], int(a)) for a in columns]
    return torch.stack([site_kernel(potential, log_m, a, dt, kappa).exp() for a in start], -2)


@pytest.mark.parametrize("categories", [2, 3, 4])
def test_the_site_kernel_is_a_kernel_with_the_right_rates(categories):
    potential, log_m = random_site(categories)
    for dt in (1e-5, 0.3, 40.0):
        total = kernel_matrix(potential, log_m, dt, 0.7).sum(-1)
        assert torch.allclose(total, torch.ones_like(total), atol=1e-12)
    rate = (0.7 + (potential.unsqueeze(-2) - potential.unsqueeze(-1)).relu()) * log_m.exp().unsqueeze(-2)
    rate = rate - torch.diag_embed(rate.sum(-1))
    identity = torch.eye(categories, dtype=torch.float64)
    slope = (kernel_matrix(potential, log_m, 1e-6, 0.7) - identity) / 1e-6
    assert torch.allclose(slope, rate, atol=1e-4)
    exact = torch.linalg.matrix_exp(0.3 * rate)
    error = [float((kernel_matrix(potential, log_m, 0.3 / n, 0.7).matrix_power(n) - exact).abs().max()) for n in (1, 4)]
    assert error[0] < 0.01
    assert error[1] < error[0] / 2


def test_without_a_network_the_site_kernel_is_in_detailed_balance_at_every_dt():
    _, log_m = random_site(3)
    for dt in (0.01, 1.0):
        mass = log_m.exp().unsqueeze(-1) * kernel_matrix(torch.zeros_like(log_m), log_m, dt, 2.0)
        assert torch.allclose(mass, mass.mT, atol=1e-14)


def test_forwards_and_backwards_are_dual():
    """m_a p(a -> b) = m_b p_B(b -> a) up to dt, and for a = b the ratio of staying tells the growth, up to dt^2."""
    potential, log_m = random_site(3)
    growing = potential - (log_m.exp() * potential).sum(-1, keepdim=True)
    off, errors = ~torch.eye(3, dtype=torch.bool), []
    for dt in (1e-3, 5e-4):
        forth = log_m.unsqueeze(-1) + kernel_matrix(potential, log_m, dt, 2.0).log()
        back = log_m.unsqueeze(-1) + kernel_matrix(-potential, log_m, dt, 2.0).log()
        ratio = (back.mT - forth).abs()[..., off]
        stay = (back - forth).diagonal(dim1=-2, dim2=-1) + dt * growing
        errors.append((float(ratio.max()), float(stay.abs().max())))
    assert errors[0][0] < 0.02
    assert errors[1][0] < 0.6 * errors[0][0]
    assert errors[0][1] < 1e-5
    assert errors[1][1] < 0.3 * errors[0][1]


def test_the_site_kernel_survives_extreme_fields():
    """Probabilities of e^-2000 keep their logarithm."""
    field = torch.tensor([[[0.0, -2000.0, 3.0]]], dtype=torch.float64)
    log_m = conditional(field, torch.ones(1))
    for current in range(3):
        log_p = site_kernel(field, log_m, torch.tensor([[current]]), 0.1, 1.0)
        assert bool(log_p.isfinite().all())
        assert float(log_p[0, 0, 1]) < -1000 or current == 1


@pytest.mark.parametrize(("categories", "classes"), [(2, 2), (3, 2), (2, 1)])
def test_the_mean_weight_is_z(categories, classes):
    """E[w] = Z for a random network, by enumeration of all ways of two steps; for every final state likewise.

    The ways back from exact samples are those ways, weighted: E[w h(log w)] / Z is the mean of h(log w) over them.
    """
    target = PeakedTarget(2, categories)
    net = network(target)
    net.classes = net.classes if classes == 2 else (torch.arange(2),)
    assert len(net.classes) == classes
    z = math.exp(target.log_z_exact)
    forth = enumerate_outcomes(lambda x, tape: net.simulate(len(x), tape), torch.zeros(1, 2).long())
    weighted = forth.probability * forth.value.log_weight.exp()
    assert abs(float(forth.probability.sum()) - 1) < 1e-12
    assert float(forth.value.log_weight.std()) > 0.1
    assert math.isclose(float(weighted.sum()), z, rel_tol=1e-10)
    x = all_states(2, categories)
    ends = (forth.value.x.unsqueeze(0) == x.unsqueeze(1)).all(2).double()
    assert torch.allclose((ends @ weighted).log(), target.log_density(x).double(), atol=1e-10)
    back = enumerate_outcomes(lambda x, tape: net.simulate_back(x, tape).log_weight, x)
    p = (target.log_density(x).double() - target.log_z_exact).exp()[back.start] * back.probability
    for h in (torch.ones_like, torch.tanh, torch.sin):
        assert math.isclose(float(weighted @ h(forth.value.log_weight)) / z, float(p @ h(back.value)), rel_tol=1e-10)


class Script(Tape):
    """One world: a batch whose rows are particles of the same simulation, answered by one mixed-radix number."""

    def _expect_batch(self, batch):
        pass

    def categorical(self, logits):
        log_p = logits.detach().double().log_softmax(-1)
        digits = []
        for row in log_p.reshape(-1, log_p.shape[-1]):
            digits.append(int(self._remaining) % len(row))
            self._remaining = self._remaining // len(row)
            self.num_worlds *= len(row)
            self.log_probability = self.log_probability + row[digits[-1]]
        return torch.tensor(digits).reshape(log_p.shape[:-1])


def mean_over_scripts(code, worlds):
    """E[code] and the sum of all probabilities; worlds that differ only in choices not asked for share their weight."""
    total = probability = 0.0
    for world in range(worlds):
        script = Script(torch.tensor([world]))
        value = code(script)
        share = float(script.log_probability.exp()) * script.num_worlds / worlds
        total, probability = total + share * value, probability + share
    return total, probability


@pytest.mark.parametrize("below", [0.0, 0.97])
def test_resampling_keeps_the_mean_weight(below):
    """Two particles on one site, two steps: 2 + 2 + 2 + 2 choices of two, two of them those of the resampling."""
    target = PeakedTarget(1, 2)
    net = network(target, resample_below=below, scale=1.5)
    worlds = []

    def run(script):
        log_weight = net.simulate(2, script).log_weight
        worlds.append(script.num_worlds)
        return float(log_weight.exp().mean())

    mean, total = mean_over_scripts(run, 2**8)
    assert set(worlds) == ({2**6, 2**8} if below else {2**6})
    assert math.isclose(total, 1, abs_tol=1e-12)
    assert math.isclose(math.log(mean), target.log_z_exact, abs_tol=1e-10)


def test_resampling_happens_below_its_threshold_only():
    log_weight = torch.tensor([0.0, 3.0, -3.0, 0.0], dtype=torch.float64)
    ess = float(log_weight.exp().sum() ** 2 / log_weight.exp().square().sum()) / 4
    rows, kept = resample(log_weight, ess * 0.99, Noise(0))
    assert torch.equal(rows, torch.arange(4))
    assert torch.equal(kept, log_weight)
    rows, kept = resample(log_weight, ess * 1.01, Noise(0))
    assert torch.allclose(kept.exp(), log_weight.exp().mean())
    drawn = torch.bincount(torch.cat([resample(log_weight, 1.0, Noise(s))[0] for s in range(100)]), minlength=4) / 400
    assert torch.allclose(drawn.double(), log_weight.softmax(0), atol=0.08)


def test_for_one_site_the_untrained_network_is_exact_but_for_log_z():
    """K = E(x) - <E>_t with U = E, so that the residual does not depend on x, and log w hardly does."""
    target = PeakedTarget(1, 3)
    net = JumpNetwork(target, EquivariantNetwork(target.layout, 3, Noise(0), width=4), AnnealedJumps(64, 1.0), 10)
    x, t = all_states(1, 3), 0.8
    k = net.double().step_log_probs(x, Moments(torch.full((3,), t))).squeeze(1) - net.log_z_rate(torch.full((3,), t))
    mean = float(((t * target.log_density(x)).softmax(0) * target.log_density(x)).sum())
    assert torch.allclose(target.log_density(x) - k.detach(), torch.tensor(mean, dtype=torch.float64), atol=1e-6)
    log_weight = net.simulate(200, Noise(1)).log_weight
    assert float((log_weight - target.log_z_exact).abs().max()) < 0.02


def test_at_time_zero_the_untrained_network_is_exact():
    target = PeakedTarget(4, 3)
    net = JumpNetwork(target, EquivariantNetwork(target.layout, 3, Noise(0), width=4), AnnealedJumps(), 10).double()
    x = all_states(4, 3)
    assert torch.allclose(net.step_log_probs(x, Moments(torch.zeros(len(x)))).squeeze(1), target.log_density(x))


def test_the_gradient_of_the_loss_is_its_slope():
    target = PeakedTarget(4, 2)
    net = network(target)
    x, path = all_states(4, 2), Moments(torch.linspace(0, 1, 16).double())

    def loss():
        return (target.log_density(x) - net.step_log_probs(x, path).squeeze(1)).square().mean()

    loss().backward()
    noise = Noise(8)
    for name, parameter in net.named_parameters():
        direction = noise.normal(parameter.shape)
        expected = float((parameter.grad * direction).sum())
        values = []
        for step in (1e-5, -2e-5):
            with torch.no_grad():
                parameter += step * direction
            values.append(float(loss().detach()))
        with torch.no_grad():
            parameter += 1e-5 * direction
        assert math.isclose((values[0] - values[1]) / 2e-5, expected, rel_tol=1e-4, abs_tol=1e-5), name


def test_moments_are_cut_like_the_states():
    net = network(PeakedTarget(3, 2))
    net.states_per_chunk = 3
    x, path = all_states(3, 2), Moments(torch.linspace(0, 1, 8).double())
    with torch.no_grad():
        whole = net.step_log_probs(x, path)
        parts = [net.step_log_probs(x[rows], path.part(rows)) for rows, _ in net.chunks(8, path.num_steps)]
    assert len(parts) == 3
    assert torch.allclose(torch.cat(parts), whole, atol=1e-12)


def test_the_record_holds_every_state_with_its_time():
    net = network(PeakedTarget(3, 2), num_steps=4)
    plain, full = net.simulate(5, Noise(2)), net.simulate(5, Noise(2), record=True)
    assert torch.equal(plain.x, full.x)
    assert torch.equal(full.states[-5:], full.x)
    assert torch.equal(full.times, net.process.times.repeat_interleave(5))
    s = torch.linspace(0, 1, 5).double()
    assert torch.allclose(net.process.times, s + 0.6 * s * (1 - s))
    assert len(full.states) == 25
    assert len(plain.states) == 0
    back = net.simulate_back(full.x, Noise(3), record=True)
    assert torch.equal(back.states[-5:], full.x)
    assert torch.equal(back.times, full.times)
    assert not torch.equal(back.states[:5], full.x)


def test_classes_do_not_interact():
    for target in (Ising(4, 0.3), Ising(3, 0.3), Ising(2, 0.3), PeakedTarget(5, 2), PeakedTarget(1, 2)):
        classes = independent_sites(target.pairwise)
        owner = torch.cat([torch.full((len(c),), n) for n, c in enumerate(classes)])[torch.cat(classes).argsort()]
        assert torch.equal(torch.cat(classes).sort().values, torch.arange(target.dim))
        edges = target.pairwise.edges
        assert bool((owner[edges[:, 0]] != owner[edges[:, 1]]).all())
    assert len(independent_sites(Ising(4, 0.3).pairwise)) == 2
    edges = torch.combinations(torch.arange(6))
    dense = PeakedTarget(6, 2).pairwise.__class__(edges, torch.ones(len(edges)), torch.zeros(6, 2))
    assert len(independent_sites(dense)) == 1


class Unknown(AbstractTarget):
    name, dim, num_categories = "unknown", 2, 2

    def log_density(self, x):
        return x.sum(1).double()


def test_what_cannot_work_is_said():
    module = functools.partial(EquivariantNetwork, grid_layout(1, 2), 2, Noise(0), width=2)
    with pytest.raises(InvalidArgumentError, match="pairs of sites"):
        JumpNetwork(Unknown(), module(), AnnealedJumps(), 10)
    forbidding = PeakedTarget(2, 2)
    forbidding.pairwise.field[0, 0] = -torch.inf
    with pytest.raises(InvalidArgumentError, match="forbids"):
        JumpNetwork(forbidding, module(), AnnealedJumps(), 10)
    with pytest.raises(InvalidArgumentError, match="odd"):
        module(window=4)
    for arguments in ((0, 1.0), (1, 0.0), (1, 1.0, 1.0), (1, 1.0, 0.5, 1.5)):
        with pytest.raises(InvalidArgumentError, match="use"):
            AnnealedJumps(*arguments)


def test_training_makes_the_weights_more_equal():
    """200 steps on a 3 x 3 Ising model against the untrained twin."""
    target = Ising(3, 0.6)

    def fresh():
        module = EquivariantNetwork(target.layout, 2, Noise(1), width=16, depth=1)
        return JumpNetwork(target, module, AnnealedJumps(12, 8.0), 10**6)

    net, noise, losses = fresh(), Noise(2), []
    optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(200):
        if step % 50 == 0:
            seen = net.simulate(64, noise, record=True)
        rows = noise.integers(len(seen.states), (96,))
        x, path = seen.states[rows], Moments(seen.times[rows])
        loss = (target.log_density(x) - net.step_log_probs(x, path).squeeze(1)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert sum(losses[-20:]) < 0.05 * sum(losses[:20])

    def ess(sampler):
        w = sampler.simulate(800, Noise(9)).log_weight.softmax(0)
        return float(1 / w.square().sum() / 800)

    assert ess(net) > 0.8
    assert ess(fresh()) < 0.5
    log_z = float(net.simulate(800, Noise(9)).log_weight.logsumexp(0)) - math.log(800)
    assert abs(log_z - target.log_z_exact) < 0.06
    exact = target.sample(200, Noise(4))
    assert abs(float(net.simulate_back(exact, Noise(5)).log_weight.mean()) - target.log_z_exact) < 0.2
