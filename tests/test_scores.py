"""Scores of a sampler that is exact from the start, and of one that is not."""

import pytest
import torch

from sabre.evaluation import backward_log_weights, evaluate, sample_weighted, true_samples
from sabre.networks import CausalNetwork, LocalFieldLogits
from sabre.noise import Noise
from sabre.processes import Blocks, MaskedDiffusion, Schedule, make_order
from sabre.tape import all_states
from sabre.targets import Ising

TARGET = Ising(3, 0.8, coupling=0.0, field=0.7)
BLOCKS = Blocks.boxes(TARGET.layout, 2, (1, 3))
PROCESS = MaskedDiffusion(BLOCKS, make_order("random", BLOCKS.layout), Schedule())


def network(informed):
    """Its output starts at zero, so informed logits alone decide: for free spins they are exact."""
    local = LocalFieldLogits(TARGET.pairwise, BLOCKS) if informed else None
    return CausalNetwork(BLOCKS.layout, 8, Noise(0), width=8, heads=2, informed=local)


def test_every_log_weight_of_an_exact_sampler_is_log_z():
    _, log_weight = sample_weighted(network(True), PROCESS, TARGET, 50, Noise(1), batch=20)
    assert log_weight.shape == (50,)
    backward = backward_log_weights(network(True), PROCESS, TARGET, all_states(9, 2), Noise(2))
    for found in (log_weight, backward):
        assert (found - TARGET.log_z_exact).abs().max() < 1e-5
    wrong = backward_log_weights(network(False), PROCESS, TARGET, all_states(9, 2), Noise(2))
    assert (wrong - TARGET.log_z_exact).abs().max() > 1


def test_bounds_meet_for_an_exact_sampler_and_bracket_log_z_for_another():
    truth = true_samples(TARGET, 300, 4)
    exact, other = (evaluate(network(informed), PROCESS, TARGET, 300, 3, truth) for informed in (True, False))
    for figure in (exact.elbo, exact.eubo, exact.log_z):
        assert figure.value == pytest.approx(TARGET.log_z_exact, abs=1e-5)
    assert exact.ess.value == pytest.approx(1)
    assert other.elbo.value + 1 < TARGET.log_z_exact < other.eubo.value - 0.5
    assert abs(other.log_z.value - TARGET.log_z_exact) < 4.5 * other.log_z.stderr
    assert other.ess.value < 0.5
    assert exact.true_samples == "exact"


def test_log_weights_belong_to_their_samples_across_batches():
    x, log_weight = sample_weighted(network(False), PROCESS, TARGET, 7, Noise(1), batch=3)
    expected = TARGET.log_density(x) + 9 * torch.tensor(2.0, dtype=torch.float64).log()
    assert torch.allclose(log_weight, expected, atol=1e-5)
