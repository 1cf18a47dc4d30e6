"""Algorithm 1, part by part: what is stored, what is learnt from, and what is refused."""

import pytest
import torch

import sabre
from sabre.errors import TargetError
from sabre.objectives import log_likelihood
from sabre.targets import Ising
from sabre.training import TrainingState
from sabre.training.algorithm import prefill

OPTIONS = sabre.Options(
    steps=4, batch_size=6, width=8, depth=1, heads=2, buffer_size=30, prefill=2, mcmc_ratio=0.5, mcmc_steps=3
)


def state_of(target=None):
    """A state whose order is fixed, so that a final state tells its trajectory."""
    return TrainingState(target or Ising(4, 0.6, field=0.3), OPTIONS)


def log_pf_of(state, x):
    process = state.sampler.process
    path = process.draw_path(len(x), state.noises["path"])
    return log_likelihood(state.sampler.network, process.blocks.encode(x), path)


def test_stored_priorities_are_log_weights_at_the_temperature_and_densities_are_not_annealed():
    state = state_of()
    prefill(state.experience, beta=0.25)
    held = {name: tensor[:12] for name, tensor in state.experience.buffer.state_tensors().items()}
    assert len(state.experience.buffer) == 12
    x = held["x"].long()
    log_density = state.target.log_density(x)
    assert torch.allclose(held["log_density"], log_density, atol=1e-10)
    assert torch.allclose(held["priority"], 0.25 * log_density - log_pf_of(state, x), atol=1e-4)
    assert not torch.allclose(held["priority"], log_density - log_pf_of(state, x), atol=0.1)


@pytest.mark.parametrize("on_policy", [True, False])
def test_annealing_multiplies_the_log_density_inside_the_log_weight(on_policy):
    state = state_of()
    state.begin()
    batch = state.experience.sample_on_policy() if on_policy else state.experience.replay()
    log_pf = log_likelihood(state.sampler.network, batch.tokens, batch.path)
    log_z = float(state.learner.log_z.detach())
    expected, plain = (float((b * batch.log_density - log_pf - log_z).square().mean()) for b in (0.25, 1.0))
    info = state.learner.update(batch, beta=0.25, rate=1.0, noise=state.noises["drop"])
    assert info.loss == pytest.approx(expected, rel=1e-4)
    assert info.loss != pytest.approx(plain, rel=1e-2)


def test_exploration_keeps_true_densities_and_gives_its_share_of_a_batch():
    state = state_of()
    state.begin()
    state.experience.explore()
    held = state.experience.mcmc_buffer.state_tensors()
    assert len(state.experience.mcmc_buffer) == 6
    assert torch.allclose(held["log_density"][:6], state.target.log_density(held["x"][:6].long()), atol=1e-10)
    found = {tuple(row) for row in held["x"][:6].tolist()}
    states = [tuple(row) for row in state.sampler.process.blocks.decode(state.experience.replay().tokens).tolist()]
    assert set(states[:3]) <= found
    assert not set(states[3:]) <= found


def test_a_target_that_forbids_everything_is_refused_before_the_first_step():
    target = sabre.Target(lambda x: torch.full((len(x),), -torch.inf), dim=4, num_categories=2)
    with pytest.raises(TargetError, match="-inf on all 3090 random states"):
        sabre.train(target, options=OPTIONS, progress=False)
