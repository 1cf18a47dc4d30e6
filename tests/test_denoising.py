"""Random masks, averaged weights and batches that are used again: what MDNS is made of."""

import itertools

import pytest
import torch

import sabre
from sabre.errors import InvalidArgumentError
from sabre.noise import Noise
from sabre.objectives import choose_masks, denoise, log_likelihood
from sabre.processes import Path
from sabre.targets import Ising
from sabre.training import TrainingState
from sabre.training.annealing import inverse_temperature
from sabre.training.averages import Averages
from small import NETWORKS, all_orders

F64 = torch.float64
MDNS = sabre.Options(
    method="wdce", net="mlp", steps=12, batch_size=16, width=12, depth=1, block="1", order="random", ema=0.9, reuse=3,
    replicates=4, grad_clip=0.0, eval_interval=0, log_interval=1, final_samples=0, carry_log_z=False,
)  # fmt: skip


def state_of(**changes):
    return TrainingState(Ising(3, 0.5, field=0.4), MDNS.replace(changes))


def collected(network):
    gradient = torch.cat([p.grad.flatten().clone() for p in network.parameters()])
    network.zero_grad()
    return gradient


@pytest.mark.parametrize("name", ["mlp", "vit", "user"])
def test_the_mean_over_all_masks_is_the_gradient_of_all_steps(name):
    """Averaged over every order and every number of shown tokens; without the factor 1/lambda it is another one."""
    _, _, network = NETWORKS[name]
    tokens = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 1]])
    coefficients = torch.tensor([0.7, -1.3], dtype=F64)
    network.zero_grad()
    total, unweighted = torch.zeros(1), torch.zeros(1)
    orders = all_orders(4)
    wanted = 0.0
    for order in orders:
        path = Path(order.expand(2, -1), torch.ones(4, dtype=torch.long))
        wanted = wanted + (network.step_log_probs(tokens, path).sum(1) * coefficients).sum() / len(orders)
    wanted.backward()
    wanted = collected(network)
    for order, shown in itertools.product(orders, range(4)):
        denoise(network, tokens, coefficients, [(order.expand(2, -1), shown)])
        part = collected(network) / (4 * len(orders))
        total, unweighted = total + part, unweighted + part * (4 - shown) / 4
    assert torch.allclose(total, wanted, atol=1e-10)
    assert not torch.allclose(unweighted, wanted, atol=1e-2)


def test_replicates_are_averaged_in_chunks():
    _, _, network = NETWORKS["vit"]
    tokens, masks = torch.tensor([[0, 1, 1, 0]] * 3), choose_masks(torch.zeros(3, 4).long(), 3, Noise(0))
    coefficients = torch.tensor([0.2, 1.0, -3.0], dtype=F64)
    network.zero_grad()
    parts = []
    for mask in masks:
        denoise(network, tokens, coefficients, [mask])
        parts.append(collected(network))
    before, network.states_per_chunk = network.states_per_chunk, 2
    denoise(network, tokens, coefficients, masks)
    network.states_per_chunk = before
    assert torch.allclose(collected(network), sum(parts) / 3, atol=1e-10)


@pytest.mark.parametrize(("num_tokens", "replicates"), [(4, 8), (9, 4), (5, 1)])
def test_the_number_of_shown_tokens_is_uniform_and_spread(num_tokens, replicates):
    class Scripted(Noise):
        start = 0

        def integers(self, high, shape):
            assert (high, shape) == (num_tokens, (1,))
            self.start += 1
            return torch.tensor([self.start - 1])

    noise, tokens = Scripted(0), torch.zeros(2, num_tokens).long()
    drawn = [[m for _, m in choose_masks(tokens, replicates, noise)] for _ in range(num_tokens)]
    for column in zip(*drawn, strict=True):
        assert sorted(column) == list(range(num_tokens))
    assert all(len(set(row)) == min(num_tokens, replicates) for row in drawn)


def test_averaged_weights_follow_and_count_little_at_first():
    trained, follower = torch.nn.Linear(1, 1, dtype=F64), torch.nn.Linear(1, 1, dtype=F64)
    for p, q in zip(trained.parameters(), follower.parameters(), strict=True):
        torch.nn.init.constant_(p, 1.0)
        torch.nn.init.constant_(q, 0.0)
    averages = Averages(follower, 0.5)
    found, expected = [], []
    value = 0.0
    for t in range(12):
        averages.follow(list(trained.parameters()))
        decay = min(0.5, (1 + t) / (10 + t))
        value = decay * value + 1 - decay
        expected.append(value)
        found.append(float(follower.weight))
    assert found == pytest.approx(expected, abs=1e-12)
    assert not any(p.requires_grad for p in follower.parameters())


def test_a_batch_is_used_again_with_the_weights_of_the_law_that_drew_it():
    """The averaged weights draw; three steps learn from each batch; its log-weights stay what they were."""
    state = state_of()
    state.begin()
    before = state.num_evaluations
    drawn = [state.advance().batch for _ in range(6)]
    log_pf = log_likelihood(state.sampler.drawing, drawn[5].tokens, drawn[5].path)
    for first in (0, 3):
        for later in drawn[first + 1 : first + 3]:
            assert torch.equal(later.tokens, drawn[first].tokens)
            assert torch.equal(later.log_pf, drawn[first].log_pf)
    assert not torch.equal(drawn[3].tokens, drawn[0].tokens)
    assert [batch.is_new for batch in drawn] == [True, False, False] * 2
    assert not torch.allclose(log_pf, drawn[5].log_pf, atol=1e-4)
    assert state.num_evaluations - before == 2 * 16


def test_the_averaged_network_draws_and_the_other_one_learns():
    state = state_of(reuse=1)
    state.begin()
    for _ in range(5):
        state.advance()
    trained, averaged = (list(net.parameters()) for net in (state.sampler.network, state.sampler.drawing))
    assert any((a - b).abs().max() > 1e-4 for a, b in zip(trained, averaged, strict=True))
    path = state.sampler.process.draw_path(16, Noise.named(0, "path"))
    batch = state.experience.sample_on_policy()
    assert not batch.is_current
    log_pf = log_likelihood(state.sampler.drawing, batch.tokens, batch.path)
    assert torch.allclose(batch.log_pf, log_pf, atol=1e-4)
    assert path.num_steps == 9


@pytest.mark.parametrize("method", ["tb", "lv", "ce"])
def test_trajectories_of_other_weights_are_judged_by_the_trained_ones_but_weighed_by_the_law_that_drew_them(method):
    state = state_of(method=method, reuse=2, steps=40)
    state.begin()
    for _ in range(5):
        state.advance()
    batch = state.experience.on_policy()
    learner = state.learner
    log_pf = batch.log_pf if method == "ce" else log_likelihood(learner.network, batch.tokens, batch.path)
    other = log_likelihood(learner.network, batch.tokens, batch.path) if method == "ce" else batch.log_pf
    expected, wrong = (
        learner.objective(0.5 * batch.log_density - x, float(learner.log_z.detach()), "model").loss
        for x in (log_pf, other)
    )
    info = learner.update(batch, beta=0.5, rate=1.0, noise=Noise(0))
    assert info.loss == pytest.approx(float(expected), rel=1e-5)
    assert info.loss != pytest.approx(float(wrong), rel=1e-5)


def test_mdns_learns():
    """Weighted denoising cross-entropy on a 3 x 3 lattice: the effective sample size rises."""
    options = MDNS.replace({"steps": 400, "batch_size": 64, "ema": 0.95, "learning_rate": 5e-3})
    target = Ising(3, 0.5, field=0.2)
    trained = sabre.train(target, options=options, progress=False).evaluate(1000)
    untrained = sabre.train(target, options=options.replace({"steps": 1}), progress=False).evaluate(1000)
    assert trained.ess.value > 0.6 > 0.3 > untrained.ess.value
    assert trained.elbo.value - 0.01 < target.log_z_exact < trained.eubo.value + 0.01


def test_warm_up_keeps_the_exponent_and_then_lets_go():
    assert [inverse_temperature(step, 10, 0.5, 0.7) for step in (0, 4, 5, 9)] == [0.7, 0.7, 1.0, 1.0]
    assert inverse_temperature(1, 10, 0.5) == 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "wdce", "net": "causal"}, "use ce, or net mlp or vit"),
        ({"method": "wdce", "net": "mlp", "drop": 0.5}, "use 0"),
        ({"method": "rkl", "ema": 0.9}, "ema to 0"),
        ({"method": "rkl", "reuse": 2}, "reuse to 1"),
        ({"method": "wdce+replay", "net": "mlp", "priority": "density"}, "use weight or uniform"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        sabre.Options(**changes)
