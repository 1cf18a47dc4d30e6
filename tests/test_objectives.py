"""Objectives and gradients by enumeration: what the coefficients are the gradient of."""

import copy

import pytest
import torch

from sabre.noise import Noise
from sabre.objectives import OBJECTIVES, backpropagate, bounded, choose_steps, log_likelihood
from sabre.processes import Path
from sabre.tape import Tape
from small import NETWORKS, every_trajectory, randomised

F64 = torch.float64


def setting(name="mlp", schedule=(1, 2, 1)):
    target, process, network = NETWORKS[name]
    tokens, path = every_trajectory(process, torch.tensor(schedule))
    log_density = target.log_density(process.blocks.decode(tokens))
    log_order = -torch.log(torch.tensor(float(len(path.order.unique(dim=0))), dtype=F64))
    return target, network, tokens, path, log_density, log_order


def gradient_of(network, scalar):
    return torch.cat([g.flatten() for g in torch.autograd.grad(scalar, list(network.parameters()), retain_graph=True)])


def collected(network):
    return torch.cat([p.grad.flatten() for p in network.parameters()])


def exact_kl_gradients(network, tokens, path, log_density, log_order, log_z):
    """Gradients of KL(p || target) and KL(target || p) over all trajectories, by automatic differentiation."""
    log_p = network.step_log_probs(tokens, path).sum(1)
    log_target = log_density - log_z
    reverse = ((log_p + log_order).exp() * (log_p - log_target)).sum()
    forward = -((log_target + log_order).exp() * log_p).sum()
    return gradient_of(network, reverse), gradient_of(network, forward)


def expected_gradient(network, tokens, path, log_density, law, name, origin, log_z):
    """E over batches of two independent trajectories from `law` of sum_b c_b grad log p(tau_b), all pairs counted."""
    log_p = network.step_log_probs(tokens, path).sum(1)
    log_weight = (log_density - log_p).detach()
    n = len(tokens)
    coefficient = torch.zeros(n, dtype=F64)
    for a in range(n):
        for b in range(n):
            pair = OBJECTIVES[name](torch.stack([log_weight[a], log_weight[b]]), log_z, origin).coefficients
            coefficient[a] += law[a] * law[b] * pair[0]
            coefficient[b] += law[a] * law[b] * pair[1]
    return gradient_of(network, (coefficient * log_p).sum())


@pytest.mark.parametrize(("name", "factor"), [("tb", 2.0), ("lv", 2.0), ("rkl", 1.0)])
def test_on_policy_expectation_is_the_gradient_of_the_reverse_kl(name, factor):
    target, network, tokens, path, log_density, log_order = setting("mlp-blocks", (1, 1))
    with torch.no_grad():
        law = (network.step_log_probs(tokens, path).sum(1) + log_order).exp()
    reverse, _ = exact_kl_gradients(network, tokens, path, log_density, log_order, target.log_z_exact)
    found = expected_gradient(network, tokens, path, log_density, law, name, "model", target.log_z_exact + 0.3)
    assert torch.allclose(found, factor * reverse, atol=1e-10)
    assert not torch.allclose(found, -factor * reverse, atol=1e-3)


def test_cross_entropy_on_true_samples_is_the_gradient_of_the_forward_kl():
    target, network, tokens, path, log_density, log_order = setting("mlp-blocks", (1, 1))
    law = (log_density - target.log_z_exact + log_order).exp()
    _, forward = exact_kl_gradients(network, tokens, path, log_density, log_order, target.log_z_exact)
    found = expected_gradient(network, tokens, path, log_density, law, "ce", "target", 0.0)
    assert torch.allclose(found, forward, atol=1e-10)


@pytest.mark.parametrize(("name", "origin"), [("ce", "model"), ("rkl", "target")])
def test_normalised_weights_bring_samples_of_one_law_to_the_other(name, origin):
    """On the whole space as one batch, weighted by its law, the self-normalised estimate is exact."""
    target, network, tokens, path, log_density, log_order = setting()
    network, log_density = randomised(copy.deepcopy(network), scale=0.2), 0.4 * log_density
    log_z = float((log_density + log_order).logsumexp(0))
    log_p = network.step_log_probs(tokens, path).sum(1)
    lw = (log_density - log_p).detach()
    law = (log_p.detach() if origin == "model" else log_density - log_z) + log_order
    counts = (law.exp() * 2_000_000).round().long()
    index = torch.arange(len(tokens)).repeat_interleave(counts)
    value = OBJECTIVES[name](lw[index], 0.0, origin)
    total = torch.zeros(len(tokens), dtype=F64).index_add_(0, index, value.coefficients)
    found = gradient_of(network, (total * log_p).sum())
    reverse, forward = exact_kl_gradients(network, tokens, path, log_density, log_order, log_z)
    wanted, other = (forward, reverse) if name == "ce" else (reverse, forward)
    assert (found - wanted).norm() < 1e-3 * wanted.norm() < 1e-1 * (found - other).norm()


def test_every_objective_is_stationary_at_the_target():
    """With constant log-weights (the sampler is exact) no objective but the maximum-likelihood one moves anything."""
    log_weight = torch.full((6,), 3.7, dtype=F64)
    for name in ("tb", "lv", "rkl"):
        for origin in ("model", "target"):
            assert OBJECTIVES[name](log_weight, 3.7, origin).coefficients.abs().max() < 1e-12
    ce = OBJECTIVES["ce"](log_weight, 3.7, "model")
    assert torch.allclose(ce.coefficients, torch.full((6,), -1 / 6, dtype=F64))


def test_log_z_gradient_of_trajectory_balance():
    log_weight = torch.tensor([1.0, -2.0, 4.0], dtype=F64)
    log_z = torch.tensor(0.7, dtype=F64, requires_grad=True)
    (log_weight - log_z).square().mean().backward()
    value = OBJECTIVES["tb"](log_weight, 0.7, "model")
    assert torch.allclose(value.log_z_grad, log_z.grad, atol=1e-12)
    assert OBJECTIVES["lv"](log_weight, 0.7, "model").log_z_grad == 0
    # A uniform model fits the allowed states with log Z = d log C: it is the forbidden ones that pull log Z down.
    with_forbidden = torch.cat([log_weight, torch.tensor([-torch.inf], dtype=F64)])
    assert OBJECTIVES["tb"](with_forbidden, 0.7, "model").log_z_grad > value.log_z_grad + 10


def test_forbidden_states_push_down_and_stay_finite():
    log_weight = torch.tensor([2.0, -torch.inf, 1.0], dtype=F64)
    assert bounded(log_weight).tolist() == [2.0, -98.0, 1.0]
    for objective in OBJECTIVES.values():
        value = objective(log_weight, 1.0, "model")
        assert value.coefficients.isfinite().all()
        assert value.loss.isfinite()
    assert OBJECTIVES["tb"](log_weight, 1.0, "model").coefficients[1] > 0
    assert bounded(torch.full((2,), -torch.inf, dtype=F64)).isfinite().all()


@pytest.mark.parametrize("name", ["ce", "rkl"])
@pytest.mark.parametrize("origin", ["model", "target"])
def test_a_forbidden_state_is_no_sample_of_the_target(name, origin):
    """It has no weight in ce, nor in rkl on samples of the target; the others count as if it were not there."""
    allowed = torch.tensor([0.3, -1.0, 2.0], dtype=F64)
    with_one = torch.cat([allowed, torch.tensor([-torch.inf], dtype=F64)])
    alone = OBJECTIVES[name](allowed, 0.0, origin).coefficients
    found = OBJECTIVES[name](with_one, 0.0, origin).coefficients
    if name == "rkl" and origin == "model":
        assert found[3] > 1
        return
    assert torch.allclose(found[:3], alone, atol=1e-12)
    assert found[3] == 0
    nothing = OBJECTIVES[name](torch.full((4,), -torch.inf, dtype=F64), 0.0, origin)
    assert (nothing.coefficients == 0).all()
    assert nothing.loss.isfinite()


@pytest.mark.parametrize("name", ["mlp", "vit", "causal-informed", "causal-blocks", "user"])
@pytest.mark.parametrize("known", [True, False])
def test_gradients_in_chunks_are_those_of_the_whole(name, known):
    """One state or trajectory at a time, with the likelihood told or not, the gradient is the direct one."""
    schedule = (1, 1) if "blocks" in name else (1, 2, 1)
    target, network, tokens, path, log_density, _ = setting(name, schedule)
    coefficients_of = lambda log_pf: OBJECTIVES["tb"](log_density - log_pf, 1.0, "model").coefficients  # noqa: E731
    log_p = network.step_log_probs(tokens, path).sum(1)
    wanted = gradient_of(network, (coefficients_of(log_p.detach()) * log_p).sum())
    attribute = "tokens_per_chunk" if name.startswith("causal") else "states_per_chunk"
    before = getattr(network, attribute)
    for size in (7, 10**6):
        setattr(network, attribute, size)
        network.zero_grad()
        backpropagate(network, tokens, path, coefficients_of, log_pf=log_p.detach() if known else None)
        assert torch.allclose(collected(network), wanted, atol=1e-10)
        assert torch.allclose(log_likelihood(network, tokens, path), log_p.detach(), atol=1e-10)
    setattr(network, attribute, before)
    network.zero_grad()


def test_random_subsets_of_steps_keep_the_expected_gradient():
    """The mean over all subsets of the reweighted partial gradients is the full one; without the weight it is not."""
    target, network, tokens, path, log_density, _ = setting("mlp", (1, 1, 1, 1))
    tokens, path, log_density = tokens[:24:5], Path(path.order[:24:5], path.schedule), log_density[:24:5]
    coefficients_of = lambda log_pf: OBJECTIVES["tb"](log_density - log_pf, 1.0, "model").coefficients  # noqa: E731
    network.zero_grad()
    backpropagate(network, tokens, path, coefficients_of)
    wanted = collected(network)
    rows = len(tokens)
    total, unscaled = torch.zeros_like(wanted), torch.zeros_like(wanted)
    for world in range(24):
        tape = Tape(torch.full((rows,), world))
        steps, scale = choose_steps(rows, 4, 0.5, tape)
        assert steps.shape == (rows, 2)
        assert scale == 2.0
        network.zero_grad()
        backpropagate(network, tokens, path, coefficients_of, steps=steps, scale=scale)
        total += collected(network) / 24
        unscaled += collected(network) / 24 / scale
    assert torch.allclose(total, wanted, atol=1e-10)
    assert not torch.allclose(unscaled, wanted, atol=1e-3)
    network.zero_grad()


def test_nothing_dropped_means_all_steps():
    assert choose_steps(3, 8, 0.0, Noise(0)) == (None, 1.0)
    steps, scale = choose_steps(3, 8, 0.999, Noise(0))
    assert steps.shape == (3, 1)
    assert scale == 8.0


def test_every_objective_is_in_this_table():
    assert set(OBJECTIVES) == {"tb", "lv", "rkl", "ce", "wdce", "leaps"}
