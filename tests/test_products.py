"""The fast routes of products, attention and ELU: their values and gradients are those of PyTorch's own."""

import math

import pytest
import torch
from torch import nn

from sabre.networks import MLP, StateNetwork, products
from sabre.noise import Noise
from sabre.objectives import backpropagate
from sabre.processes import Path
from small import randomised


def drawn(*shape, seed=0):
    return Noise(seed).normal(shape)


def gradients(function, *arguments):
    inputs = [argument.clone().requires_grad_() for argument in arguments]
    out = function(*inputs)
    out.backward(torch.cos(torch.arange(out.numel(), dtype=out.dtype)).reshape(out.shape))
    return out.detach(), [x.grad for x in inputs]


def agree(one, other, tolerance):
    (a, grads_a), (b, grads_b) = one, other
    return all(torch.allclose(x, y, atol=tolerance, rtol=0) for x, y in zip([a, *grads_a], [b, *grads_b], strict=True))


def attend(query, key, value):
    return nn.functional.scaled_dot_product_attention(query, key, value)


PAIRS = {
    "product": (products._Product.apply, nn.functional.linear, [(5, 4, 7), (3, 7), (3,)]),
    "linear": (products.linear, nn.functional.linear, [(5, 4, 7), (3, 7), (3,)]),
    "attention": (products.attention, attend, [(3, 2, 4, 6), (3, 2, 5, 6), (3, 2, 5, 6)]),
    "elu": (products.elu, nn.functional.elu, [(40, 3)]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients_are_those_of_pytorch(name):
    mine, theirs, shapes = PAIRS[name]
    arguments = [3 * drawn(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    assert agree(gradients(mine, *arguments), gradients(theirs, *arguments), 1e-10)
    single = [argument.float() for argument in arguments]
    assert agree(gradients(mine, *single), gradients(theirs, *single), 1e-4)
    wrong = [1.01 * argument for argument in arguments]
    assert not agree(gradients(mine, *arguments), gradients(theirs, *wrong), 1e-10)


def test_float32_products_have_full_precision():
    a, b = drawn(300, 500, seed=1), drawn(500, 200, seed=2)
    exact = a @ b
    for found in (products.matmul(a.float(), b.float()), products.linear(a.float(), b.t().float(), None)):
        assert float((found.double() - exact).abs().max()) < 2e-4
    halved = (a.bfloat16() @ b.bfloat16()).double()
    assert float((halved - exact).abs().max()) > 2e-2


ENDS = [-torch.inf, -1e4, -90.0, -1e-3, 0.0, 1e-3, 90.0, 1e4, torch.inf]


def test_elu_is_right_at_both_ends():
    x = torch.tensor(ENDS)
    assert torch.allclose(products.elu(x), nn.functional.elu(x), atol=3e-7)


def test_elu_in_binary_units_is_elu_and_refuses_to_overwrite_its_argument():
    c = math.log2(math.e)
    x = torch.tensor(ENDS)
    assert torch.allclose(products.binary_elu(c * x) / c, nn.functional.elu(x), atol=3e-7)
    with pytest.raises(AssertionError, match="read again"):
        products.binary_elu(x, out=x)
    x = drawn(50, seed=3).requires_grad_()
    nn.functional.elu(x).sum().backward()
    slope = products.binary_elu_backward_(torch.ones(50, dtype=x.dtype), products.binary_elu(c * x.detach()))
    assert torch.allclose(slope, x.grad, atol=1e-12)


def mlp_state(depth, tokens=5, vocabulary=3):
    module = MLP(tokens, vocabulary, Noise(3), width=7, depth=depth)
    return randomised(StateNetwork(module, vocabulary, 10**6))


@pytest.mark.parametrize("vocabulary", [2, 3])
@pytest.mark.parametrize("schedule", [[1, 1, 1, 1, 1], [2, 1, 2], [5], [1, 3, 1]])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_mlp_along_a_trajectory_is_the_mlp_state_by_state(depth, schedule, vocabulary):
    """The shortcut (chunks of whole trajectories) against masked states one by one: log p and gradients."""
    network, noise = mlp_state(depth, vocabulary=vocabulary), Noise(4)
    path = Path(noise.permutation(6, 5), torch.tensor(schedule))
    tokens = noise.integers(vocabulary, (6, 5))
    every = torch.arange(len(schedule)).expand(6, -1)
    weights = noise.normal((6, len(schedule)))

    def differentiated(steps):
        network.zero_grad()
        log_p = network.step_log_probs(tokens, path, steps)
        (log_p * weights).sum().backward()
        return log_p.detach(), [p.grad.clone() for p in network.parameters()]

    assert agree(differentiated(None), differentiated(every), 1e-10)


@pytest.mark.parametrize("vocabulary", [2, 3])
@pytest.mark.parametrize("schedule", [[1, 1, 1, 1, 1], [2, 1, 2], [5]])
def test_a_recorded_rollout_has_the_gradient_of_a_second_pass(schedule, vocabulary):
    network = mlp_state(2, vocabulary=vocabulary)
    path = Path(Noise(4).permutation(6, 5), torch.tensor(schedule))
    tokens, log_pf = network.rollout(path, Noise(5))
    assert log_pf.requires_grad

    def differentiated(known):
        network.zero_grad()
        backpropagate(network, tokens, path, torch.sin, log_pf=known, scale=1.5)
        return known.detach(), [p.grad.clone() for p in network.parameters()]

    total = log_pf.double().sum(1)
    assert agree(differentiated(total), differentiated(total.detach()), 1e-10)
    network.states_per_chunk = 6 * len(schedule) - 1
    assert not network.rollout(path, Noise(5)).log_pf.requires_grad
    with torch.no_grad():
        assert not network.rollout(path, Noise(5)).log_pf.requires_grad


def test_a_gradient_of_weights_that_have_changed_since_the_rollout_is_refused():
    network = mlp_state(2)
    path = Path(Noise(4).permutation(6, 5), torch.ones(5, dtype=torch.long))
    _, log_pf = network.rollout(path, Noise(5))
    with torch.no_grad():
        next(network.parameters()).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        log_pf.sum().backward()
