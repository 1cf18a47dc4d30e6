"""The replay buffer and the plan of Algorithm 1."""

import itertools

import pytest
import torch

from sabre.errors import UnknownNameError
from sabre.mcmc import HammingBall
from sabre.noise import Noise
from sabre.tape import enumerate_outcomes
from sabre.training import ExperiencePlan, ReplayBuffer
from sabre.training.annealing import inverse_temperature, learning_rate_factor
from sabre.training.replay import priority_of


def filled(capacity, total, batch=3):
    """A buffer after `total` insertions in batches, state n being n in base 3 with priority sin(n) * 3."""
    buffer = ReplayBuffer(capacity, 4, 3)
    for start in range(0, total, batch):
        n = torch.arange(start, min(start + batch, total))
        buffer.add(digits(n), -n.double(), 3 * torch.sin(n.double()))
    return buffer


def digits(n):
    return n.unsqueeze(1) // 3 ** torch.arange(3, -1, -1) % 3


def number(x):
    return x @ 3 ** torch.arange(3, -1, -1)


def draw_law(buffer, total):
    """Probability of each inserted state in a draw, by enumeration."""
    outcomes = enumerate_outcomes(
        lambda rows, tape: torch.cat([part.reshape(len(rows), -1) for part in buffer.draw(len(rows), tape)], 1),
        torch.zeros(1, 1, dtype=torch.long),
    )
    which = number(outcomes.value[:, :4].long())
    assert torch.equal(outcomes.value[:, 4], -which.double())
    return torch.zeros(total, dtype=torch.float64).index_add_(0, which, outcomes.probability)


@pytest.mark.parametrize(("capacity", "total"), [(10, 6), (10, 10), (7, 17), (5, 23), (4, 41)])
def test_draws_follow_the_softmax_of_priorities_through_wrap_around_and_resume(capacity, total):
    buffer = filled(capacity, total)
    expected = torch.zeros(total, dtype=torch.float64)
    newest = torch.arange(max(0, total - capacity), total)
    expected[newest] = (3 * torch.sin(newest.double())).softmax(0)
    assert len(buffer) == min(total, capacity)
    assert torch.allclose(draw_law(buffer, total), expected, atol=1e-12)

    again = ReplayBuffer(capacity, 4, 3)
    again.load_state_tensors({name: tensor.clone() for name, tensor in buffer.state_tensors().items()})
    assert torch.allclose(draw_law(again, total), expected, atol=1e-12)
    for one in (buffer, again):
        one.add(digits(torch.tensor([total])), -torch.tensor([float(total)]), torch.tensor([0.5]))
    assert torch.equal(draw_law(buffer, total + 1), draw_law(again, total + 1))
    if total >= capacity:
        assert draw_law(again, total + 1)[total - capacity] == 0


def test_priorities_are_frozen_and_states_are_copies():
    """What the caller does to its tensors afterwards changes no draw; a buffer that followed it would be noticed."""
    n, p = 4000, torch.tensor(2.0).sigmoid().item()
    x, priority = torch.tensor([[0, 1], [1, 1]]), torch.tensor([0.0, 2.0])
    frozen, following = ReplayBuffer(4, 2, 2), ReplayBuffer(4, 2, 2)
    frozen.add(x, torch.zeros(2), priority)
    x.zero_()
    priority.zero_()
    drawn, _ = frozen.draw(n, Noise(0))
    assert set(map(tuple, drawn.tolist())) == {(0, 1), (1, 1)}
    following.add(torch.tensor([[0, 1], [1, 1]]), torch.zeros(2), priority)
    followed, _ = following.draw(n, Noise(0))
    bound = 4.5 * (p * (1 - p) / n) ** 0.5
    assert abs(float((drawn[:, 0] == 1).double().mean()) - p) < bound
    assert abs(float((followed[:, 0] == 1).double().mean()) - p) > 4 * bound


def test_more_than_fits_keeps_the_last():
    buffer = filled(4, 41, batch=41)
    assert set(number(buffer.draw(2000, Noise(1))[0]).tolist()) <= {37, 38, 39, 40}


def test_forbidden_states_are_not_drawn_unless_there_is_nothing_else():
    buffer = ReplayBuffer(4, 1, 2)
    buffer.add(torch.tensor([[0], [1]]), torch.zeros(2), torch.tensor([-torch.inf, -800.0]))
    assert (buffer.draw(100, Noise(0))[0] == 1).all()
    buffer = ReplayBuffer(4, 1, 2)
    buffer.add(torch.tensor([[0], [1]]), torch.zeros(2), torch.full((2,), -torch.inf))
    assert len(buffer.draw(100, Noise(0))[0].unique()) == 2


def test_priorities_by_name():
    log_density, log_weight = torch.tensor([1.0, 2.0]), torch.tensor([-3.0, 4.0])
    assert torch.equal(priority_of("weight", log_density, log_weight), log_weight)
    assert torch.equal(priority_of("density", log_density, log_weight), log_density)
    assert torch.equal(priority_of("uniform", log_density, log_weight), torch.zeros(2))
    with pytest.raises(UnknownNameError, match="weight"):
        priority_of("wieght", log_density, log_weight)


@pytest.mark.parametrize(
    ("ratio", "pattern"),
    [(0.0, "1111111"), (2.0, "1001001"), (1.0, "1010101"), (4.0, "1000010"), (0.5, "1101101"), (0.25, "1111011")],
)
def test_off_to_on_ratio(ratio, pattern):
    """R off-policy steps per on-policy step, or 1/R on-policy ones per off-policy step; the first is on-policy."""
    plan = ExperiencePlan(off_to_on=ratio)
    assert "".join("1" if plan.is_on_policy(step) else "0" for step in range(7)) == pattern
    steps = [plan.is_on_policy(step) for step in range(6000)]
    assert abs(steps.count(False) / 6000 - ratio / (1 + ratio)) < 1e-3


def test_exploration_interval():
    plan = ExperiencePlan(kernel=HammingBall(), mcmc_interval=3)
    assert [step for step in range(10) if plan.explores(step)] == [0, 3, 6, 9]
    assert not any(ExperiencePlan(kernel=None).explores(step) for step in range(5))
    assert not any(ExperiencePlan(kernel=HammingBall(), off_to_on=0.0).explores(step) for step in range(5))


def test_annealing_and_decay():
    assert [inverse_temperature(step, 100, 0.5) for step in (0, 25, 50, 99)] == [0.0, 0.5, 1.0, 1.0]
    assert inverse_temperature(0, 100, 0.0) == 1.0
    factors = [learning_rate_factor(step, 100, 0.5) for step in (0, 49, 50, 75, 99)]
    assert factors[:3] == [1.0, 1.0, 1.0]
    assert factors[3] == pytest.approx(0.5)
    assert 0 < factors[4] < 0.01
    assert all(a >= b for a, b in itertools.pairwise(learning_rate_factor(s, 100, 0.3) for s in range(100)))
    assert learning_rate_factor(99, 100, 0.0) == 1.0
