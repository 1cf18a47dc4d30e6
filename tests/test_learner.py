"""One optimiser step: AdamW, clipping, rates and weight decay, beside the formulas written out."""

import math

import pytest
import torch
from torch import nn

from sabre.networks import Rollout
from sabre.networks.base import Chunk
from sabre.noise import Noise
from sabre.objectives import ObjectiveValue
from sabre.processes import Path
from sabre.tape import Tape
from sabre.training import Learner, Trajectories

F64 = torch.float64
START, LOG_Z = (0.5, -2.0), 1.5
TOKENS = (3, 4)
STEPS = [(1.0, 40.0, 1.0), (0.1, -3.0, 0.5), (-0.4, 10.0, 0.2)]
"""(coefficient c, dL / d log Z, rate): the gradient is c (3, 4), of norm 5 c."""
OPTIONS = {"learning_rate": 0.1, "log_z_learning_rate": 0.2, "weight_decay": 0.5, "grad_clip": 1.0, "drop": 0.0}


class Slope(nn.Module):
    """log p of step n is theta_n times the token that it reveals: grad log p is known, and does not move."""

    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(START, dtype=F64))

    def rollout(self, *_):
        return Rollout(torch.tensor([TOKENS]), torch.zeros(1, 2))

    def step_log_probs(self, tokens, path, steps=None):
        log_p = (tokens * self.theta).gather(1, path.order)
        return log_p if steps is None else log_p.gather(1, steps)

    def chunks(self, batch, num_steps):
        yield Chunk(slice(0, batch), slice(0, num_steps))


class Script:
    """An objective with given coefficients."""

    def __init__(self):
        self.left = list(STEPS)

    def __call__(self, log_weight, *_):
        coefficient, log_z_grad, _ = self.left.pop(0)
        return ObjectiveValue(
            torch.tensor(7.0), torch.full_like(log_weight, coefficient), torch.tensor(log_z_grad, dtype=F64)
        )


def learner_of(options):
    return Learner(Slope(), Script(), log_z=LOG_Z, **options)


def batch_of_one():
    path = Path(torch.tensor([[0, 1]]), torch.tensor([1, 1]))
    return Trajectories(torch.tensor([TOKENS]), path, torch.zeros(1, dtype=F64), None, "target")


def found(options):
    """[theta_0, theta_1, log Z] after each step, and what was reported."""
    learner = learner_of(options)
    values, infos = [], []
    for _, _, rate in STEPS:
        infos.append(learner.update(batch_of_one(), beta=1.0, rate=rate, noise=Noise(0)))
        values.append([*learner.network.theta.tolist(), float(learner.log_z.detach())])
    return torch.tensor(values, dtype=F64), infos


def adamw(value, gradients, rates, decay):
    """m = 0.9 m + 0.1 g, v = 0.999 v + 0.001 g^2, x = (1 - rate decay) x - rate m^ / (sqrt(v^) + 1e-8)."""
    m = v = 0.0
    values = []
    for n, (g, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        value = (1 - rate * decay) * value - rate * m / (1 - 0.9**n) / (math.sqrt(v / (1 - 0.999**n)) + 1e-8)
        values.append(value)
    return values


def expected(learning_rate, log_z_learning_rate, weight_decay, grad_clip, drop, decayed=True, log_z_weight_decay=0.0):
    """The same by the formulas."""
    limit = grad_clip or math.inf
    scales = [c * min(1.0, limit / (5 * abs(c))) for c, _, _ in STEPS]
    factors = [rate if decayed else 1.0 for _, _, rate in STEPS]
    rates, log_z_rates = ([base * f for f in factors] for base in (learning_rate, log_z_learning_rate))
    columns = [
        adamw(start, [scale * token for scale in scales], rates, weight_decay)
        for start, token in zip(START, TOKENS, strict=True)
    ]
    columns.append(adamw(LOG_Z, [g for _, g, _ in STEPS], log_z_rates, log_z_weight_decay))
    return torch.tensor(columns, dtype=F64).t()


@pytest.mark.parametrize("grad_clip", [1.0, 0.0, 0.3])
def test_steps_are_those_of_adamw_with_clipped_gradients(grad_clip):
    options = OPTIONS | {"grad_clip": grad_clip}
    values, infos = found(options)
    assert torch.allclose(values, expected(**options), atol=1e-6)
    assert [info.loss for info in infos] == [7.0] * 3
    assert [info.grad_norm for info in infos] == pytest.approx([5.0, 0.5, 2.0])


WRONG = {
    "no clipping": {"grad_clip": 0.0},
    "no decay of the rates": {"decayed": False},
    "log Z at the rate of the network": {"log_z_learning_rate": OPTIONS["learning_rate"]},
    "no weight decay": {"weight_decay": 0.0},
    "weight decay of log Z": {"log_z_weight_decay": OPTIONS["weight_decay"]},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_another_rule_is_noticed(wrong):
    values, _ = found(OPTIONS)
    assert (values - expected(**OPTIONS | WRONG[wrong])).abs().max() > 1e-3


def test_dropped_steps_leave_the_gradient_and_the_others_count_more():
    for world, chosen in ((0, 0), (1, 1)):
        learner = learner_of(OPTIONS | {"drop": 0.5, "grad_clip": 0.0})
        learner.update(batch_of_one(), beta=1.0, rate=1.0, noise=Tape(torch.tensor([world])))
        wanted = [0.0, 0.0]
        wanted[chosen] = 2.0 * TOKENS[chosen]
        assert learner.network.theta.grad.tolist() == wanted


def test_a_known_change_of_log_z_moves_it_and_nothing_else():
    learner = learner_of(OPTIONS)
    learner.shift_log_z(-0.25)
    assert float(learner.log_z.detach()) == LOG_Z - 0.25
    assert learner.network.theta.tolist() == list(START)
