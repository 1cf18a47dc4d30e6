"""The Tape itself: it must enumerate what Noise draws, and a wrong probability must show."""

import math

import pytest
import torch

from sabre.errors import InvalidArgumentError
from sabre.noise import Noise
from sabre.tape import all_states, enumerate_outcomes, transition_matrix


def test_worlds_sum_to_one_for_every_kind_of_draw():
    def code(x, noise):
        a = noise.categorical(torch.tensor([[0.0, 1.0, -2.0], [0.5, -1.0, 3.0]]).expand(len(x), 2, 3))
        b = noise.bernoulli(torch.full((len(x),), 0.3))
        c = noise.integers(4, (len(x),))
        d = noise.permutation(len(x), 3)
        e = noise.index(torch.tensor([0.0, -1.0, 2.0]), len(x))
        return torch.cat([a.flatten(1), b.unsqueeze(1).long(), c.unsqueeze(1), d, e.unsqueeze(1)], 1)

    states = all_states(1, 2)
    outcomes = enumerate_outcomes(code, states)
    per_state = torch.zeros(2, dtype=torch.float64).index_add_(0, outcomes.start, outcomes.probability)
    assert torch.allclose(per_state, torch.ones(2, dtype=torch.float64), atol=1e-12)
    assert len(outcomes.value.unique(dim=0)) == 9 * 2 * 4 * 6 * 3


def test_probabilities_are_those_of_the_draws():
    logits = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64)
    matrix = transition_matrix(lambda x, noise: noise.categorical(logits.expand(len(x), -1)).unsqueeze(1), 1, 3)
    assert torch.allclose(matrix, logits.softmax(0).expand(3, -1), atol=1e-12)
    assert not torch.allclose(matrix, (-logits).softmax(0).expand(3, -1), atol=1e-2)


def test_too_many_worlds_are_refused():
    with pytest.raises(InvalidArgumentError, match="too many"):
        enumerate_outcomes(lambda x, noise: noise.integers(10, (len(x), 9)), all_states(1, 2))


def test_noise_draws_follow_their_probabilities_and_a_wrong_law_is_noticed():
    n = 200_000
    noise = Noise(3)
    logits = torch.tensor([2.0, 0.0, -3.0])
    p = logits.double().softmax(0)
    for draw in (noise.categorical(logits.expand(n, -1)), noise.index(logits, n)):
        frequency = torch.bincount(draw, minlength=3) / n
        z = (frequency - p) / (p * (1 - p) / n).sqrt()
        assert z.abs().max() < 4.5
        wrong = p[[0, 2, 1]]
        assert ((frequency - wrong) / (wrong * (1 - wrong) / n).sqrt()).abs().max() > 20
    rate = noise.bernoulli(torch.full((n,), 0.05)).double().mean()
    assert abs(rate - 0.05) < 4.5 * (0.05 * 0.95 / n) ** 0.5
    assert abs(rate - 0.06) > 4.5 * (0.05 * 0.95 / n) ** 0.5


def test_noise_state_restores_the_stream_bit_for_bit():
    noise = Noise.named(5, "rollout")
    noise.uniform((3,))
    saved = noise.state
    first = noise.permutation(4, 7)
    noise.state = saved
    assert torch.equal(first, noise.permutation(4, 7))
    assert not torch.equal(Noise.named(5, "rollout").uniform((4,)), Noise.named(5, "replay").uniform((4,)))


class Given(Noise):
    """A stream whose uniforms are given."""

    def __init__(self, values):
        super().__init__(0)
        self.values = torch.tensor(values, dtype=torch.float64)

    def uniform(self, shape):
        return self.values.reshape(tuple(shape))


def test_uniforms_are_split_at_the_cumulative_probabilities_in_float64():
    """Categories of probability 1e-12 have their place below 1, where float32 has none."""
    p = torch.tensor([1 - 3e-12, 1e-12, 2e-12], dtype=torch.float64)
    uniforms, categories = [0.0, 1 - 3.1e-12, 1 - 2.9e-12, 1 - 2.1e-12, 1 - 1.9e-12, 1 - 2**-53], [0, 0, 1, 1, 2, 2]
    given = Given(uniforms)
    assert given.categorical(p.log().expand(6, 3)).tolist() == categories
    assert given.categorical(p.log().expand(2, 3, 3)).flatten().tolist() == categories
    assert given.index(p.log(), 6).tolist() == categories
    rounded = p.float().cumsum(0)
    assert torch.searchsorted(rounded, given.values.float(), right=True).clamp(max=2).tolist() != categories


def test_two_categories_and_bernoulli_are_split_in_float64():
    gap = 27.0
    p = 1 / (1 + math.exp(-gap))
    given = Given([0.0, p - 1e-15, p + 1e-15, 1 - 2**-53])
    for dtype in (torch.float32, torch.float64):
        assert given.categorical(torch.tensor([0.0, gap], dtype=dtype).expand(4, 2)).tolist() == [1, 1, 0, 0]
    assert torch.tensor(gap).sigmoid() == 1
    rare = Given([0.0, 0.99e-12, 1.01e-12, 0.5])
    assert rare.bernoulli(torch.full((4,), 1e-12)).tolist() == [True, True, False, False]


RARE = torch.tensor([0.0, -10.0], dtype=torch.float64)
RARE_OF_THREE = torch.tensor([0.0, 1.0, -9.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("draw", "p"),
    [
        (lambda noise, n: noise.categorical(RARE.expand(n, 2)) == 1, RARE.softmax(0)[1]),
        (lambda noise, n: noise.categorical(RARE_OF_THREE.expand(n, 3)) == 2, RARE_OF_THREE.softmax(0)[2]),
        (lambda noise, n: noise.index(RARE_OF_THREE, n) == 2, RARE_OF_THREE.softmax(0)[2]),
        (lambda noise, n: noise.bernoulli(torch.full((n,), 4e-5)), torch.tensor(4e-5)),
    ],
    ids=["two", "three", "index", "bernoulli"],
)
def test_rare_events_keep_their_probability(draw, p):
    noise, rounds, n = Noise(0), 20, 500_000
    assert not torch.equal((noise.uniform((100,)) * 2**32).frac(), torch.zeros(100, dtype=torch.float64))
    expected = rounds * n * float(p)
    hits = sum(int(draw(noise, n).sum()) for _ in range(rounds))
    assert abs(hits - expected) < 4.5 * expected**0.5
    assert abs(hits - 1.5 * expected) > 4.5 * (1.5 * expected) ** 0.5
    assert abs(hits - expected / 1.5) > 4.5 * (expected / 1.5) ** 0.5
