"""The Tape itself: it must enumerate what Noise draws, and a wrong probability must show."""

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


def test_rare_events_keep_their_probability():
    noise = Noise(0)
    assert not torch.equal((noise.uniform((100,)) * 2**32).frac(), torch.zeros(100, dtype=torch.float64))
    logits = torch.tensor([0.0, -13.0], dtype=torch.float64)
    hits = sum(int(noise.categorical(logits.expand(2_000_000, -1)).sum()) for _ in range(10))
    expected = 2e7 * logits.softmax(0)[1].item()
    assert abs(hits - expected) < 4.5 * expected**0.5
