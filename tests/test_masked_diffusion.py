"""Masked diffusion by enumeration of the shipped rollouts: every network, every schedule, every order."""

import math

import pytest
import torch

from sabre.networks.slots import Slots
from sabre.processes import Path
from sabre.tape import enumerate_outcomes
from small import NETWORKS, NETWORKS_3, all_orders, all_schedules, every_trajectory

CASES = [
    pytest.param(*case, id=f"{name}-{c}")
    for c, table in ((2, NETWORKS), (3, NETWORKS_3))
    for name, case in table.items()
]


@pytest.mark.parametrize(("target", "process", "network"), CASES)
def test_trajectories_sum_to_one_for_every_schedule_and_order(target, process, network):
    for schedule in all_schedules(process.num_tokens):
        tokens, path = every_trajectory(process, schedule)
        with torch.no_grad():
            p = network.step_log_probs(tokens, path).sum(1).exp()
        per_order = p.reshape(-1, math.factorial(process.num_tokens)).sum(0)
        assert torch.allclose(per_order, torch.ones_like(per_order), atol=1e-10)


@pytest.mark.parametrize(("target", "process", "network"), CASES)
def test_recorded_log_probabilities_are_those_of_the_draws_and_of_one_pass(target, process, network):
    """The rollout's draws (counted by the Tape), its record and the second call agree, step by step."""
    for schedule in all_schedules(process.num_tokens):
        with torch.no_grad():
            outcomes = enumerate_outcomes(
                lambda orders, tape, s=schedule: (network.rollout(Path(orders, s), tape), orders),
                all_orders(process.num_tokens),
            )
            (tokens, log_pf), orders = outcomes.value
            again = network.step_log_probs(tokens, Path(orders, schedule))
        assert torch.allclose(log_pf.sum(1).exp(), outcomes.probability, atol=1e-10)
        assert torch.allclose(log_pf, again, atol=1e-10)
        assert tokens.min() >= 0
        assert tokens.max() < process.blocks.vocabulary


@pytest.mark.parametrize(("target", "process", "network"), CASES)
def test_mean_weight_is_z_and_the_bounds_bracket_it(target, process, network):
    """E[w] = Z exactly for every schedule; ELBO <= log Z <= EUBO."""
    for schedule in all_schedules(process.num_tokens):
        tokens, path = every_trajectory(process, schedule)
        with torch.no_grad():
            log_pf = network.step_log_probs(tokens, path).sum(1)
        log_density = target.log_density(process.blocks.decode(tokens))
        log_weight = log_density - log_pf
        orders = math.factorial(process.num_tokens)
        p, z = log_pf.exp() / orders, math.exp(target.log_z_exact)
        posterior = log_density.exp() / z / orders
        assert abs((p * log_weight.exp()).sum() - z) < 1e-10 * z
        elbo, eubo = (p * log_weight).sum(), (posterior * log_weight).sum()
        assert elbo < target.log_z_exact - 1e-3 < target.log_z_exact + 1e-3 < eubo


@pytest.mark.parametrize(("target", "process", "network"), CASES)
def test_chosen_steps_are_those_of_the_whole(target, process, network):
    schedule = all_schedules(process.num_tokens)[-1]
    tokens, path = every_trajectory(process, schedule)
    generator = torch.Generator().manual_seed(0)
    steps = torch.rand(len(tokens), path.num_steps, generator=generator).argsort(1)[:, : max(1, path.num_steps - 1)]
    with torch.no_grad():
        chosen = network.step_log_probs(tokens, path, steps)
        whole = network.step_log_probs(tokens, path)
    assert torch.allclose(chosen, whole.gather(1, steps), atol=1e-10)


@pytest.mark.parametrize(("target", "process", "network"), CASES)
def test_a_step_sees_what_came_before_it_and_nothing_else(target, process, network):
    """Changing the value of a token changes the log-probabilities of later steps and leaves the earlier ones."""
    for schedule in all_schedules(process.num_tokens):
        if len(schedule) == 1:
            continue
        tokens, path = every_trajectory(process, schedule)
        first = path.order[:, :1]
        last = path.order[:, -1:]
        vocabulary = process.blocks.vocabulary
        changed_last = tokens.scatter(1, last, (tokens.gather(1, last) + 1) % vocabulary)
        changed_first = tokens.scatter(1, first, (tokens.gather(1, first) + 1) % vocabulary)
        with torch.no_grad():
            base = network.step_log_probs(tokens, path)
            assert torch.allclose(network.step_log_probs(changed_last, path)[:, :-1], base[:, :-1], atol=1e-10)
            assert not torch.allclose(network.step_log_probs(changed_first, path)[:, -1], base[:, -1], atol=1e-3)


def test_slots_of_single_steps_are_the_plain_causal_ones():
    slots = Slots.of(torch.ones(5, dtype=torch.long))
    assert slots.is_plain
    assert slots.known.tolist() == [-1, 0, 1, 2, 3]
    assert slots.asked.tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(slots.visible(), torch.ones(5, 5).tril().bool())
    assert not Slots.of(torch.tensor([2, 3])).is_plain


def test_trained_with_one_schedule_and_sampled_with_another():
    """The log-weights of any schedule are exact for the same network: E[w] = Z for each, with different bounds."""
    target, process, network = NETWORKS["mlp"]
    elbos = []
    for schedule in ([1, 1, 1, 1], [2, 2], [4]):
        tokens, path = every_trajectory(process, torch.tensor(schedule))
        with torch.no_grad():
            log_pf = network.step_log_probs(tokens, path).sum(1)
        log_weight = target.log_density(process.blocks.decode(tokens)) - log_pf
        elbos.append(float((log_pf.exp() / 24 * log_weight).sum()))
    assert len({round(elbo, 6) for elbo in elbos}) == 3
