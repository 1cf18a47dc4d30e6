"""Algorithm 1 as the paper lists it: what is called in which order, with how many rows, and at what cost."""

import math
from dataclasses import replace

import pytest
import torch

from sabre.mcmc import HammingBall, Proposal
from sabre.networks import Rollout
from sabre.noise import Noise
from sabre.processes import Blocks, MaskedDiffusion, Schedule, make_order
from sabre.tape import Tape, all_states
from sabre.targets import CheckedTarget
from sabre.training import Experience, ExperiencePlan, Learner, ReplayBuffer, algorithm_1, prefill
from sabre.training.learner import UpdateInfo
from small import PeakedTarget

M, L, INTERVAL, SHARE, PREFILL = 7, 4, 3, 0.3, 2
NUM_MCMC = 3
"""ceil(r M) with r M = 2.1."""
DIM, CATEGORIES = 3, 5
TARGET = PeakedTarget(DIM, CATEGORIES)
LOG_PF = -DIM * math.log(CATEGORIES)
STREAMS = ("rollout", "path", "replay", "mcmc", "drop")


class UniformNetwork:
    """Every trajectory is equally probable."""

    def __init__(self, events):
        self.events = events

    def rollout(self, path, noise):
        self.events.append(("rollout", len(path.order)))
        log_pf = torch.full(path.order.shape, -math.log(CATEGORIES), dtype=torch.float64)
        return Rollout(noise.integers(CATEGORIES, path.order.shape), log_pf)

    def step_log_probs(self, *_):
        raise AssertionError("nothing is learnt here")

    def chunks(self, *_):
        return iter(())

    def parameters(self):
        return iter(())


class Shift:
    """A kernel that moves every site on by one: after L steps a chain stands at its start + L."""

    def __init__(self, events):
        self.events = events

    def propose(self, x, *_):
        self.events.append(("propose", len(x)))
        return Proposal((x + 1) % CATEGORIES, rejection_free=True)


class RecordingBuffer(ReplayBuffer):
    """A replay buffer that writes down what goes in and out."""

    def __init__(self, name, events, capacity=60):
        super().__init__(capacity, DIM, CATEGORIES)
        self.name, self.events = name, events
        self.added, self.drawn = [], []

    def add(self, x, log_density, priority):
        self.events.append((f"{self.name}.add", len(x)))
        self.added.append((x.clone(), log_density.clone(), priority.clone()))
        super().add(x, log_density, priority)

    def draw(self, n, noise):
        self.events.append((f"{self.name}.draw", n))
        x, log_density = super().draw(n, noise)
        self.drawn.append(x)
        return x, log_density


class RecordingLearner(Learner):
    """Learns nothing."""

    def __init__(self, events):
        self.events, self.seen = events, []

    def update(self, batch, *, beta, rate, **_):
        self.events.append(("update", len(batch.tokens)))
        self.seen.append((batch, beta, rate))
        return UpdateInfo(0.0, 0.0)


def recorded(**plan):
    """An experience whose every part writes into one list, and that list."""
    events = []
    numbers = {"batch_size": M, "mcmc_ratio": SHARE, "mcmc_interval": INTERVAL, "mcmc_steps": L, "prefill": PREFILL}
    blocks = Blocks.boxes(TARGET.layout, CATEGORIES, (1,))
    process = MaskedDiffusion(blocks, make_order("random", blocks.layout), Schedule())
    noises = {name: Noise.named(0, name) for name in STREAMS}
    plan = ExperiencePlan(kernel=Shift(events), **numbers | plan)
    experience = Experience(plan, CheckedTarget(TARGET), process, UniformNetwork(events), noises)
    experience.buffer, experience.mcmc_buffer = RecordingBuffer("B", events), RecordingBuffer("B_MCMC", events)
    return experience, events


def listing(pattern):
    """The events of Algorithm 1, for a pattern of on-policy (1) and off-policy (0) steps."""
    events = [("rollout", M), ("B.add", M)] * PREFILL
    for step, on_policy in enumerate(pattern):
        if on_policy == "1":
            events += [("rollout", M), ("B.add", M)]
        else:
            events += [("B.draw", M - NUM_MCMC), ("B_MCMC.draw", NUM_MCMC)]
        events += [("update", M)]
        if step % INTERVAL == 0:
            events += [("B.draw", M), *[("propose", M)] * L, ("B_MCMC.add", M)]
    return events


def trained(ratio, steps, beta=0.25, **plan):
    experience, events = recorded(off_to_on=ratio, **plan)
    learner = RecordingLearner(events)
    prefill(experience, beta=0.0)
    for step in range(steps):
        algorithm_1(step, experience, learner, beta=beta, rate=0.5, noise=Noise(0))
    return experience, learner, events


PATTERNS = [(2.0, "1001001"), (0.5, "1101101")]


@pytest.mark.parametrize(("ratio", "pattern"), PATTERNS)
def test_everything_happens_in_the_order_of_the_listing(ratio, pattern):
    _, learner, events = trained(ratio, len(pattern))
    assert events == listing(pattern)
    assert all((beta, rate) == (0.25, 0.5) for _, beta, rate in learner.seen)


@pytest.mark.parametrize(("ratio", "pattern"), PATTERNS)
def test_energy_is_evaluated_for_rollouts_and_chains_only(ratio, pattern):
    """M per rollout and M for each of the L steps of an exploration; the buffer knows where the chains start."""
    experience, _, _ = trained(ratio, len(pattern))
    rollouts, explorations = PREFILL + pattern.count("1"), len(pattern[::INTERVAL])
    assert experience.target.num_evaluations == rollouts * M + explorations * M * L
    assert len(experience.buffer) == rollouts * M
    assert len(experience.mcmc_buffer) == explorations * M


@pytest.mark.parametrize(("ratio", "pattern"), PATTERNS)
def test_what_is_stored_is_what_was_drawn(ratio, pattern):
    """Final states of on-policy batches, with true densities and the log-weight of that moment."""
    experience, learner, _ = trained(ratio, len(pattern))
    batches = [batch for batch, _, _ in learner.seen if batch.origin == "model"]
    stored = experience.buffer.added
    assert len(stored) == PREFILL + len(batches)
    for (x, log_density, priority), beta in zip(stored, [0.0] * PREFILL + [0.25] * len(batches), strict=True):
        assert torch.allclose(log_density, TARGET.log_density(x), atol=1e-12)
        assert torch.allclose(priority, beta * log_density - LOG_PF, atol=1e-12)
    for (x, _, _), batch in zip(stored[PREFILL:], batches, strict=True):
        assert torch.equal(x, batch.tokens)
        assert torch.allclose(batch.log_pf, torch.full((M,), LOG_PF, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize(("priority", "origin"), [("weight", "target"), ("density", "model"), ("uniform", "model")])
def test_replayed_batches_are_the_draws_and_say_which_law_they_follow(priority, origin):
    experience, learner, _ = trained(2.0, 3, priority=priority)
    first, second, third = (batch for batch, _, _ in learner.seen)
    assert (first.origin, second.origin, third.origin) == ("model", origin, origin)
    assert second.log_pf is third.log_pf is None
    start, *drawn = experience.buffer.drawn
    for batch, x, found in zip((second, third), drawn, experience.mcmc_buffer.drawn, strict=True):
        rows = torch.cat([x, found])
        assert sorted(batch.tokens.tolist()) == sorted(rows.tolist())
        assert torch.allclose(batch.log_density, TARGET.log_density(batch.tokens), atol=1e-12)
    ends, _, priorities = experience.mcmc_buffer.added[0]
    assert torch.equal(ends, (start + L) % CATEGORIES)
    assert torch.equal(priorities, torch.zeros(M, dtype=torch.float64))


@pytest.mark.parametrize(("held", "taken"), [(0, 0), (1, 1), (NUM_MCMC, NUM_MCMC), (6, NUM_MCMC)])
def test_no_more_rows_come_from_mcmc_than_it_has_found(held, taken):
    experience, events = recorded()
    experience.buffer.add(all_states(DIM, CATEGORIES)[:9], torch.zeros(9), torch.zeros(9))
    if held:
        experience.mcmc_buffer.add(all_states(DIM, CATEGORIES)[-held:], torch.zeros(held), torch.zeros(held))
    events.clear()
    assert len(experience.replay().tokens) == M
    assert events == [("B.draw", M - taken)] + [("B_MCMC.draw", taken)] * bool(taken)


def test_exploration_starts_from_weighted_draws():
    """By enumeration: with as many chains as states in the buffer, world w of the tape draws state w."""
    experience, _ = recorded(batch_size=9)
    x, weight = all_states(DIM, CATEGORIES)[::14], 3 * torch.sin(torch.arange(9.0, dtype=torch.float64))
    experience.buffer.add(x, TARGET.log_density(x), weight)
    experience._noises["mcmc"] = tape = Tape(torch.arange(9))
    experience.explore()
    assert tape.num_worlds == 9
    assert torch.allclose(tape.log_probability.exp(), weight.softmax(0), atol=1e-12)
    assert not torch.allclose(tape.log_probability.exp(), torch.full((9,), 1 / 9, dtype=torch.float64), atol=0.1)
    ends, log_density, _ = experience.mcmc_buffer.added[0]
    assert torch.equal(ends, (x + L) % CATEGORIES)
    assert torch.allclose(log_density, TARGET.log_density(ends), atol=1e-12)


def test_on_policy_training_stores_and_explores_nothing():
    experience, _, events = trained(0.0, 4)
    assert events == [("rollout", M), ("update", M)] * 4
    assert len(experience.buffer) == len(experience.mcmc_buffer) == 0


def test_no_log_density_of_an_explored_state_is_stale():
    """Chains of one step with rejections: a state that is kept must keep the log density that it has."""
    experience, events = recorded()
    plan = replace(experience.plan, kernel=HammingBall(1), batch_size=50, mcmc_steps=1)
    experience = Experience(plan, experience.target, experience.process, UniformNetwork(events), experience._noises)
    prefill(experience, beta=1.0)
    experience.explore()
    x, log_density = experience.mcmc_buffer.draw(200, Noise(3))
    assert torch.allclose(log_density, TARGET.log_density(x))
    starts = {tuple(row) for row in experience.buffer.draw(5000, Noise(4))[0].tolist()}
    assert any(tuple(row) in starts for row in x.tolist())
