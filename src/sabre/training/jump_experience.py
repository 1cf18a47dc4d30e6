"""Where states and times come from when jumps are learnt: the chains of the model, and chains back from MCMC states."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.mcmc import ChainState, advance
from sabre.networks import JumpNetwork
from sabre.noise import Noise, NoiseLike
from sabre.processes import Moments
from sabre.targets import AbstractTarget
from sabre.training.experience import ExperiencePlan
from sabre.training.learner import Trajectories
from sabre.training.replay import ReplayBuffer

__all__ = ["JumpExperience", "MomentBuffer"]


class MomentBuffer:
    """States with the times at which they were seen, drawn with the same probability each."""

    def __init__(self, capacity: int, dim: int, num_categories: int, device: torch.device) -> None:
        self._states = ReplayBuffer(capacity, dim, num_categories, device)
        self._times = torch.zeros(capacity, dtype=torch.float64, device=device)

    def __len__(self) -> int:
        return len(self._states)

    def add(
        self, x: Int[Tensor, "batch dim"], log_density: Float[Tensor, " batch"], times: Float[Tensor, " batch"]
    ) -> None:
        """Append, over the oldest ones once all places are taken."""
        place = self._states.add(x, log_density, torch.zeros_like(log_density))
        self._times[place] = times[-len(place) :]

    def draw(self, n: int, noise: NoiseLike) -> tuple[Int[Tensor, "n dim"], Float[Tensor, " n"], Float[Tensor, " n"]]:
        """n states with replacement, their log densities and times."""
        place = self._states.choose(n, noise)
        return (*self._states.at(place), self._times[place])

    def state_tensors(self) -> dict[str, Tensor]:
        """Everything that a checkpoint must hold."""
        return self._states.state_tensors() | {"times": self._times}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Back to a saved state."""
        self._states.load_state_tensors(tensors)
        self._times.copy_(tensors["times"])


class JumpExperience:
    """The counterpart of `Experience` for annealed jumps: a trajectory is a state and a time, a step has no length.

    A batch has `moments` of them. On-policy ones are drawn from all that `batch_size` chains have visited, which the
    buffer takes in; replayed ones from the buffer, a share of them from chains that were run backwards from states
    that MCMC has found. Times are shifted at random by up to half a step, so that all of [0, 1] is learnt.
    """

    def __init__(
        self, plan: ExperiencePlan, target: AbstractTarget, network: JumpNetwork, noises: dict[str, Noise], moments: int
    ) -> None:
        self.plan, self.target, self.network, self.moments, self._noises = plan, target, network, moments, noises
        device, dim, categories = noises["rollout"].device, target.dim, target.num_categories
        self.buffer = MomentBuffer(plan.buffer_size, dim, categories, device)
        self.mcmc_buffer = MomentBuffer(plan.buffer_size, dim, categories, device)
        self._ends = ReplayBuffer(plan.batch_size, dim, categories, device)

    def on_policy(self) -> Trajectories:
        """A new batch; there is no log-probability that would have to be kept for using it again."""
        return self.sample_on_policy()

    @torch.no_grad()
    def sample_on_policy(self) -> Trajectories:
        """Run the chains, remember where they were and when, and take some of it."""
        run = self.network.simulate(self.plan.batch_size, self._noises["rollout"], record=True)
        log_density = self.target.log_density(run.states).double()
        if self.plan.off_to_on > 0:
            self.buffer.add(run.states, log_density, run.times)
            self._ends.add(run.x, log_density[-len(run.x) :], run.log_weight)
        chosen = self._noises["path"].integers(len(run.states), (self.moments,))
        return self._batch(run.states[chosen], log_density[chosen], run.times[chosen])

    def replay(self) -> Trajectories:
        """States and times that chains have visited before."""
        noise = self._noises["replay"]
        num_mcmc = min(math.ceil(self.plan.mcmc_ratio * self.moments), len(self.mcmc_buffer))
        parts = [self.buffer.draw(self.moments - num_mcmc, noise)]
        if num_mcmc:
            parts.append(self.mcmc_buffer.draw(num_mcmc, noise))
        return self._batch(*(torch.cat(column) for column in zip(*parts, strict=True)))

    @torch.no_grad()
    def explore(self) -> None:
        """Run MCMC from weighted draws of the last ends, and the chains of the model backwards from where it ends."""
        assert self.plan.kernel is not None
        noise = self._noises["mcmc"]
        start = ChainState(*self._ends.draw(self.plan.batch_size, noise))
        state, _ = advance(self.plan.kernel, start, self.target, noise, self.plan.mcmc_steps)
        back = self.network.simulate_back(state.x, noise, record=True)
        self.mcmc_buffer.add(back.states, self.target.log_density(back.states).double(), back.times)

    def _batch(
        self, x: Int[Tensor, "moments dim"], log_density: Float[Tensor, " moments"], times: Float[Tensor, " moments"]
    ) -> Trajectories:
        shift = (self._noises["path"].uniform(times.shape) - 0.5) / self.network.process.num_steps
        return Trajectories(x, Moments((times + shift).clamp(0, 1)), log_density, None, "model", is_new=False)

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold, by group."""
        return {
            "replay": self.buffer.state_tensors(),
            "mcmc": self.mcmc_buffer.state_tensors(),
            "ends": self._ends.state_tensors(),
        }

    def load_state_tensors(self, tensors: dict[str, dict[str, Tensor]]) -> None:
        """Back to a saved state."""
        self.buffer.load_state_tensors(tensors["replay"])
        self.mcmc_buffer.load_state_tensors(tensors["mcmc"])
        self._ends.load_state_tensors(tensors["ends"])
