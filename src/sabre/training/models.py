"""What is trained: a network with its process, how it gets its experience, and what samples in the end."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from sabre.evaluation import JumpSampler, MaskedSampler, WeightedSampler
from sabre.networks import JumpNetwork, Network, Trainable
from sabre.noise import Noise
from sabre.processes import AnnealedJumps, MaskedDiffusion, Schedule
from sabre.targets import AbstractTarget
from sabre.training.averages import Averages
from sabre.training.experience import Experience, ExperiencePlan
from sabre.training.jump_experience import JumpExperience

__all__ = ["JumpModel", "MaskedModel", "Model"]


@runtime_checkable
class Model(Protocol):
    """`network` is trained. `averages` are its averaged weights, which draw all samples where they are kept."""

    @property
    def network(self) -> Trainable:
        """What the learner changes."""

    @property
    def averages(self) -> Averages | None:
        """Averaged weights, if there are any."""

    @property
    def drawing(self) -> Trainable:
        """The network that samples."""

    def experience(
        self, plan: ExperiencePlan, target: AbstractTarget, noises: dict[str, Noise]
    ) -> Experience | JumpExperience:
        """Where its batches come from."""

    def weighted(self, target: AbstractTarget, schedule: Schedule | None = None) -> WeightedSampler:
        """As evaluation wants it, with the schedule of evaluations or another one."""


@dataclass(frozen=True)
class MaskedModel:
    """Masked diffusion; the processes that it is trained and sampled with differ in their schedule only."""

    network: Network
    process: MaskedDiffusion
    eval_process: MaskedDiffusion
    averages: Averages | None

    @property
    def drawing(self) -> Network:
        if self.averages is None:
            return self.network
        assert isinstance(self.averages.network, Network)
        return self.averages.network

    def experience(self, plan: ExperiencePlan, target: AbstractTarget, noises: dict[str, Noise]) -> Experience:
        """Rollouts, replay and MCMC."""
        return Experience(plan, target, self.process, self.drawing, noises, self.averages is None)

    def weighted(self, target: AbstractTarget, schedule: Schedule | None = None) -> MaskedSampler:
        """Trajectories with the schedule of evaluations or another one."""
        process = self.eval_process if schedule is None else self.process.with_schedule(schedule)
        return MaskedSampler(self.drawing, process, target)


@dataclass(frozen=True)
class JumpModel:
    """Annealed jumps; `eval_process` has steps of another length than the process of the network in training."""

    network: JumpNetwork
    eval_process: AnnealedJumps
    moments: int
    averages: Averages | None

    @property
    def drawing(self) -> JumpNetwork:
        if self.averages is None:
            return self.network
        assert isinstance(self.averages.network, JumpNetwork)
        return self.averages.network

    def experience(self, plan: ExperiencePlan, target: AbstractTarget, noises: dict[str, Noise]) -> JumpExperience:
        """Chains of the model itself."""
        return JumpExperience(plan, target, self.drawing, noises, self.moments)

    def weighted(self, target: AbstractTarget, schedule: Schedule | None = None) -> JumpSampler:
        """A fixed `schedule` of k stands for k times fewer steps."""
        process = self.eval_process
        if schedule is not None:
            steps = max(1, process.num_steps // schedule.k_max)
            process = replace(process, num_steps=steps)
        return JumpSampler(self.drawing.with_process(process), target)
