"""What a training state makes of its options: log Z and its carry, rates, schedules, the plan."""

import math

import pytest
import torch

import sabre
from sabre.mcmc import SwendsenWang
from sabre.noise import Noise
from sabre.objectives import OBJECTIVES
from sabre.processes import Schedule
from sabre.targets import Ising, Potts, Target
from sabre.training import ExperiencePlan, TrainingState
from small import UserNet

SMALL = {"steps": 6, "batch_size": 5, "width": 8, "depth": 1, "heads": 2, "buffer_size": 30, "prefill": 2}
TARGET = Ising(4, 0.6, field=0.3)


def state_of(target=TARGET, **options):
    return TrainingState(target, sabre.Options(**SMALL | options))


def log_z(state):
    return float(state.learner.log_z.detach())


def test_log_z_starts_at_that_of_the_uniform_law_unless_told_otherwise():
    assert log_z(state_of()) == pytest.approx(16 * math.log(2), abs=1e-12)
    assert log_z(state_of(Potts(2, 3, 1.0))) == pytest.approx(4 * math.log(3), abs=1e-12)
    assert log_z(state_of(log_z_init=0.0)) == 0.0
    assert log_z(state_of(log_z_init=-3.5)) == -3.5


@pytest.mark.parametrize("off_to_on", [1.0, 0.5])
def test_log_z_is_carried_along_by_its_derivative(off_to_on):
    """log Z(beta') - log Z(beta) = (beta' - beta) E[log density], by the last on-policy batch."""
    state = state_of(off_to_on=off_to_on, anneal=0.5, log_z_learning_rate=0.0)
    state.begin()
    betas = [0.0, 1 / 3, 2 / 3, 1.0, 1.0, 1.0, 1.0]
    expected = backwards = log_z(state)
    for step in range(6):
        outcome = state.advance()
        if state.experience.plan.is_on_policy(step):
            mean = float(outcome.batch.log_density.mean())
        expected += (betas[step + 1] - betas[step]) * mean
        backwards -= (betas[step + 1] - betas[step]) * mean
        assert log_z(state) == pytest.approx(expected, abs=1e-9)
    assert abs(log_z(state) - backwards) > 0.1


def test_log_z_stays_where_the_carry_is_off():
    state = state_of(anneal=0.5, log_z_learning_rate=0.0, carry_log_z=False)
    state.begin()
    before = log_z(state)
    for _ in range(3):
        state.advance()
        assert log_z(state) == before


def test_options_reach_the_learner_each_in_its_place():
    options = {"learning_rate": 0.003, "log_z_learning_rate": 0.07, "weight_decay": 0.01, "grad_clip": 0.6, "drop": 0.4}
    state = state_of(**options, method="lv+replay", decay=1.0)
    learner = state.learner
    network, last = learner._optimiser.param_groups
    assert (network["lr"], last["lr"], network["weight_decay"], last["weight_decay"]) == (0.003, 0.07, 0.01, 0.0)
    assert (learner.grad_clip, learner.drop, learner.objective) == (0.6, 0.4, OBJECTIVES["lv"])
    assert len(last["params"]) == 1
    assert last["params"][0] is learner.log_z
    state.begin()
    for step in range(3):
        state.advance()
        factor = 0.5 * (1 + math.cos(math.pi * step / 6))
        assert (network["lr"], last["lr"]) == pytest.approx((0.003 * factor, 0.07 * factor), rel=1e-12)


def test_options_reach_the_plan_each_in_its_place():
    numbers = {"off_to_on": 3.0, "mcmc_ratio": 0.7, "mcmc_interval": 11, "mcmc_steps": 13}
    plan = state_of(**numbers, priority="density").experience.plan
    assert plan == ExperiencePlan(5, 3.0, 30, "density", SwendsenWang(), 0.7, 11, 13, 2)
    assert state_of(method="tb+replay", **numbers).experience.plan.kernel is None
    assert state_of(method="tb", **numbers).experience.plan.off_to_on == 0


def test_training_and_evaluation_have_their_own_schedule_and_share_the_rest():
    state = state_of(schedule="2-3", eval_schedule="1", block="1", order="random")
    sampler = state.sampler
    assert (sampler.process.schedule, sampler.eval_process.schedule) == (Schedule(2, 3), Schedule(1, 1))
    assert sampler.process.order is sampler.eval_process.order
    assert sampler.process.blocks is sampler.eval_process.blocks
    assert state.experience.process is sampler.process


class Watched(UserNet):
    """Writes down how many sites of the states that it is asked about carry the mask."""

    def __init__(self):
        super().__init__(4, 2)
        self.seen = set()

    def forward(self, state):
        self.seen |= set((state == 2).sum(1).tolist())
        return super().forward(state)


def test_training_walks_with_its_schedule_evaluation_and_samples_with_the_other():
    quiet = SMALL | {"steps": 1, "method": "tb", "block": "1", "order": "random", "schedule": "2", "eval_interval": 0}
    for evaluated in (lambda run: run.sample(3), lambda run: run.evaluate(8)):
        net = Watched()
        run = sabre.train(Ising(2, 0.5), net=net, options=sabre.Options(**quiet), progress=False)
        assert net.seen == {4, 2}
        evaluated(run)
        assert net.seen == {4, 3, 2, 1}
    net = Watched()
    options = sabre.Options(**quiet | {"eval_interval": 1, "eval_samples": 8})
    sabre.train(Ising(2, 0.5), net=net, options=options, progress=False)
    assert net.seen == {4, 3, 2, 1}


def test_without_annealing_log_z_starts_at_the_mean_log_weight_of_a_batch():
    state = state_of(anneal=0.0, batch_size=2000)
    state.begin()
    assert abs(log_z(state) - 16 * math.log(2)) > 0.3
    assert log_z(state) == pytest.approx(TARGET.log_z_exact, abs=6)
    told = state_of(anneal=0.0, log_z_init=1.25)
    told.begin()
    assert log_z(told) == 1.25


class Dropping(UserNet):
    """A network that is random while it trains."""

    def forward(self, state):
        return torch.nn.functional.dropout(super().forward(state), 0.5, self.training)


def test_a_network_of_ones_own_computes_the_same_every_time():
    """Layers that draw random numbers of their own are switched to evaluation: log p must be a function of the path."""
    runs = [sabre.train(TARGET, net=Dropping(16, 2), options=sabre.Options(**SMALL), progress=False) for _ in range(2)]
    assert not any(module.training for module in runs[0].network.module.network.modules())
    x = runs[0].sample_with_log_weights(20)
    again = runs[0].sample_with_log_weights(20)
    assert all(torch.equal(a, b) for a, b in zip(x, again, strict=True))


def test_rollouts_of_more_states_than_fit_are_those_of_all_at_once():
    state = state_of(net="vit", method="tb")
    whole = state.sampler.network.rollout(state.sampler.process.draw_path(7, Noise(1)), Noise(2))
    state.sampler.network.states_per_chunk = 3
    parts = state.sampler.network.rollout(state.sampler.process.draw_path(7, Noise(1)), Noise(2))
    assert torch.equal(whole.tokens, parts.tokens)
    assert torch.allclose(whole.log_pf, parts.log_pf, atol=1e-5)


def test_chains_that_end_at_forbidden_states_are_not_learnt_from():
    target = Target(lambda x: torch.where(x.sum(-1) == 16, 0.0, -torch.inf), dim=16, num_categories=2)
    state = state_of(target, net="mlp", method="ce+replay+mcmc", kernel="hamming")
    state.begin()
    state.experience.explore()
    assert len(state.experience.mcmc_buffer) == 0


def hard_core(x):
    """Independent sets of a 5 x 6 grid: no two neighbours are both one. About one uniform state in a thousand."""
    grid = x.reshape(-1, 5, 6)
    clash = (grid[:, 1:] * grid[:, :-1]).sum((1, 2)) + (grid[:, :, 1:] * grid[:, :, :-1]).sum((1, 2))
    return torch.where(clash == 0, 0.0, -torch.inf)


def test_a_rare_support_is_found_and_learnt_from():
    """log Z = log of the number of independent sets, by the transfer matrix of its rows."""
    rows = [r for r in range(64) if r & (r >> 1) == 0]
    count = torch.tensor([[float(a & b == 0) for a in rows] for b in rows], dtype=torch.float64).matrix_power(4).sum()
    target = Target(hard_core, dim=30, num_categories=2, log_z=float(count.log()))
    state = TrainingState(target, sabre.Options(**SMALL | {"batch_size": 64, "prefill": 1}))
    state.begin()
    x, log_density = state.experience.buffer.draw(50, Noise(0))
    assert log_density.isfinite().all()
    assert (hard_core(x) == 0).all()
    for priority, expected in (("weight", 30 * math.log(2)), ("uniform", 0.0)):
        sloped = Target(lambda x: hard_core(x) - x.sum(1), dim=30, num_categories=2)
        state = TrainingState(sloped, sabre.Options(**SMALL | {"batch_size": 64, "prefill": 1, "priority": priority}))
        state.begin()
        tensors = state.experience.buffer.state_tensors()
        allowed = tensors["log_density"][: int(tensors["added"])] > -torch.inf
        priorities = tensors["priority"][: len(allowed)][allowed]
        assert priorities.tolist() == pytest.approx([expected] * len(priorities))  # the target is annealed to beta = 0
        assert len(priorities) > 0
    options = sabre.Options(steps=500, net="mlp", width=64, batch_size=64, eval_interval=0, final_samples=0)
    run = sabre.train(target, options=options, progress=False)
    scores = run.evaluate(2000)
    assert scores.log_z.value == pytest.approx(target.log_z_exact, abs=1.0)
    forbidden = (hard_core(run.sample(2000)) < 0).double().mean()
    assert 0 < scores.forbidden.value == pytest.approx(float(forbidden), abs=0.1)
    assert f"forbidden   {scores.forbidden}" in str(scores)
