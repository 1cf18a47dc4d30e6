"""Algorithm 1 of the paper: off-policy training with MCMC exploration."""

from typing import NamedTuple

import torch

from sabre.noise import Noise
from sabre.training.experience import Experience
from sabre.training.jump_experience import JumpExperience
from sabre.training.learner import Learner, Trajectories, UpdateInfo, annealed

__all__ = ["StepOutcome", "algorithm_1", "prefill"]


class StepOutcome(NamedTuple):
    """The batch that was learnt from, and what the update was like."""

    batch: Trajectories
    update: UpdateInfo


def algorithm_1(
    step: int, experience: Experience | JumpExperience, learner: Learner, *, beta: float, rate: float, noise: Noise
) -> StepOutcome:
    """One epoch i = step + 1 of Algorithm 1, with the target annealed to exponent `beta`."""
    if experience.plan.is_on_policy(step):
        batch = experience.on_policy()
        if batch.is_new:
            _store(experience, batch, beta)
    else:
        batch = experience.replay()
    update = learner.update(batch, beta=beta, rate=rate, noise=noise)
    if experience.plan.explores(step):
        experience.explore()
    return StepOutcome(batch, update)


@torch.no_grad()
def prefill(experience: Experience | JumpExperience, *, beta: float) -> None:
    """On-policy batches for the buffer, before the first step."""
    if experience.plan.off_to_on > 0:
        for _ in range(experience.plan.prefill):
            batch = experience.sample_on_policy()
            if batch.is_new:
                _store(experience, batch, beta)


def _store(experience: Experience | JumpExperience, batch: Trajectories, beta: float) -> None:
    """Priorities are the log-weights of this moment: at this temperature, under these weights."""
    assert batch.log_pf is not None
    assert isinstance(experience, Experience)
    if experience.plan.off_to_on > 0:
        experience.store(batch, annealed(beta, batch.log_density) - batch.log_pf.detach())
