"""What networks and blocks promise beyond being samplers: bijections and the symmetry of the torus."""

import pytest
import torch

from sabre.networks import CausalNetwork, StateNetwork, ViT
from sabre.noise import Noise
from sabre.processes import Blocks, Path
from sabre.tape import all_states
from small import grid_layout, randomised

LAYOUT = grid_layout(3, 4)


def causal(absolute):
    return randomised(CausalNetwork(LAYOUT, 2, Noise(1), width=16, depth=2, heads=2, absolute=absolute), scale=0.4)


def vit():
    return randomised(StateNetwork(ViT(LAYOUT, 2, Noise(1), width=16, depth=2, heads=2), 2, 10**6), scale=0.4)


def largest_change(network):
    """How much the log-probabilities of trajectories change when the trajectories move by (1, 1) on the torus."""
    noise = Noise(5)
    tokens, order = noise.integers(2, (20, 12)), noise.permutation(20, 12)
    moved = torch.arange(12).reshape(3, 4).roll((-1, -1), (0, 1)).flatten()
    schedule = torch.tensor([1, 2, 4, 4, 1])
    with torch.no_grad():
        here = network.step_log_probs(tokens, Path(order, schedule))
        there = network.step_log_probs(
            torch.empty_like(tokens).scatter_(1, moved.expand(20, -1), tokens), Path(moved[order], schedule)
        )
    return float((here - there).abs().max())


@pytest.mark.parametrize("network", [causal(absolute=False), vit()], ids=["causal", "vit"])
def test_relative_networks_are_equivariant_under_translation_and_absolute_ones_are_not(network):
    assert largest_change(network) < 1e-5
    assert largest_change(causal(absolute=True)) > 1e-2


@pytest.mark.parametrize(("num_categories", "box"), [(2, (1, 1)), (2, (1, 3)), (3, (2, 1)), (2, (2, 3))])
def test_blocks_are_a_bijection(num_categories, box):
    x = all_states(6, num_categories)
    blocks = Blocks.boxes(grid_layout(2, 3), num_categories, box)
    tokens = blocks.encode(x)
    assert torch.equal(blocks.decode(tokens), x)
    assert len(tokens.unique(dim=0)) == len(x)
    assert int(tokens.max()) == blocks.vocabulary - 1
