"""What networks and blocks promise beyond being samplers: bijections and the symmetry of the torus."""

import pytest
import torch
from torch import nn

from sabre.networks import AllSites, CausalNetwork, StateNetwork, ViT
from sabre.noise import Noise
from sabre.objectives import backpropagate
from sabre.processes import Blocks, Path
from sabre.tape import all_states
from small import UserNet, grid_layout, randomised

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


class Counting(nn.Module):
    """A user's network that writes down how many states it gets at once."""

    def __init__(self):
        super().__init__()
        self.network, self.seen = UserNet(12, 2), []

    def forward(self, state):
        self.seen.append(len(state))
        return self.network(state)


@pytest.mark.parametrize("steps", [3, 6, 12])
def test_memory_does_not_grow_with_the_number_of_steps(steps):
    """However many steps a trajectory has, no more states than fit are held at once; each of them is seen once."""
    module = Counting()
    network = StateNetwork(AllSites(module, 2), 2, states_per_chunk=20)
    path = Path(Noise(0).permutation(8, 12), torch.full((steps,), 12 // steps))
    tokens, log_pf = network.rollout(path, Noise(1))
    assert sum(module.seen) == 8 * steps
    module.seen.clear()
    backpropagate(network, tokens, path, torch.sin, log_pf=log_pf.double().sum(1))
    assert sum(module.seen) == 8 * steps
    assert max(module.seen) <= 20
