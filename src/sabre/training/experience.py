"""Where trajectories come from: the model itself, the replay buffer, and the states that MCMC has found from it."""

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.mcmc import ChainState, Kernel, advance
from sabre.networks import Network
from sabre.noise import Noise
from sabre.objectives import Origin
from sabre.processes import MaskedDiffusion, Path
from sabre.targets import AbstractTarget
from sabre.training.learner import Trajectories
from sabre.training.replay import ReplayBuffer, priority_of

__all__ = ["Experience", "ExperiencePlan"]


@dataclass(frozen=True)
class ExperiencePlan:
    """The numbers of Algorithm 1. `off_to_on` = 0 is on-policy training; no `kernel` means no MCMC exploration.

    An on-policy batch is learnt from `reuse` times.
    """

    batch_size: int = 128
    off_to_on: float = 2.0
    buffer_size: int = 12800
    priority: str = "weight"
    kernel: Kernel | None = None
    mcmc_ratio: float = 0.2
    mcmc_interval: int = 500
    mcmc_steps: int = 100
    prefill: int = 10
    reuse: int = 1

    def is_on_policy(self, step: int) -> bool:
        """R off-policy steps follow each on-policy step; for R < 1, 1/R on-policy steps come before an off-policy one.

        Step i is off-policy when floor(i f) grows from i to i + 1, with f = R / (1 + R) the share of such steps.
        """
        ratio = Fraction(self.off_to_on).limit_denominator(10_000)
        share = ratio / (1 + ratio)
        return math.floor((step + 1) * share) == math.floor(step * share)

    def explores(self, step: int) -> bool:
        return self.kernel is not None and self.off_to_on > 0 and step % self.mcmc_interval == 0


class Experience:
    """The two buffers of Algorithm 1 and the three ways to fill or use them."""

    def __init__(
        self,
        plan: ExperiencePlan,
        target: AbstractTarget,
        process: MaskedDiffusion,
        network: Network,
        noises: dict[str, Noise],
        is_current: bool = True,
    ) -> None:
        """`network` draws; `is_current` tells whether it is the one that is trained."""
        self.plan, self.target, self.process, self.network, self._noises = plan, target, process, network, noises
        self._device = noises["rollout"].device
        dim, categories = target.dim, target.num_categories
        self.buffer = ReplayBuffer(plan.buffer_size, dim, categories, self._device)
        self.mcmc_buffer = ReplayBuffer(plan.buffer_size, dim, categories, self._device)
        self._is_current = is_current
        self._kept: Trajectories | None = None
        self._num_uses = 0

    def on_policy(self) -> Trajectories:
        """A new batch, or the last one as long as it has not been used `reuse` times."""
        if self._kept is not None and self._num_uses < self.plan.reuse:
            self._num_uses += 1
            return self._kept
        batch = self.sample_on_policy()
        if self.plan.reuse > 1:
            assert batch.log_pf is not None
            self._kept = batch._replace(log_pf=batch.log_pf.detach(), is_new=False, is_current=False)
            self._num_uses = 1
        return batch

    def sample_on_policy(self) -> Trajectories:
        """Trajectories of the model, with the log-probability that they had (and its graph, if the network has it)."""
        path = self.process.draw_path(self.plan.batch_size, self._noises["path"], self._device)
        tokens, log_pf = self.network.rollout(path, self._noises["rollout"])
        log_density = self.target.log_density(self.process.blocks.decode(tokens))
        return Trajectories(tokens, path, log_density.double(), log_pf.double().sum(1), "model", True, self._is_current)

    def store(self, batch: Trajectories, log_weight: Float[Tensor, " batch"]) -> None:
        """Add final states to the replay buffer with the priority that they have now."""
        priority = priority_of(self.plan.priority, batch.log_density, log_weight)
        self.buffer.add(self.process.blocks.decode(batch.tokens), batch.log_density, priority)

    def replay(self) -> Trajectories:
        """Backward trajectories from states of the two buffers, a share r of them from MCMC."""
        plan, noise = self.plan, self._noises["replay"]
        num_mcmc = min(math.ceil(plan.mcmc_ratio * plan.batch_size), len(self.mcmc_buffer))
        parts = [self.buffer.draw(plan.batch_size - num_mcmc, noise)]
        if num_mcmc:
            parts.insert(0, self.mcmc_buffer.draw(num_mcmc, noise))
        x, log_density = (torch.cat(column) for column in zip(*parts, strict=True))
        return self._backward(x, log_density)

    def explore(self) -> None:
        """Run MCMC on the un-annealed target from weighted draws of the buffer and keep where the chains end."""
        assert self.plan.kernel is not None
        noise = self._noises["mcmc"]
        start = ChainState(*self.buffer.draw(self.plan.batch_size, noise))
        state, _ = advance(self.plan.kernel, start, self.target, noise, self.plan.mcmc_steps)
        allowed = state.log_density > -torch.inf
        self.mcmc_buffer.add(state.x[allowed], state.log_density[allowed], torch.zeros_like(state.log_density[allowed]))

    def _backward(self, x: Int[Tensor, "batch dim"], log_density: Float[Tensor, " batch"]) -> Trajectories:
        path = self.process.draw_path(len(x), self._noises["path"], self._device)
        origin: Origin = "target" if self.plan.priority == "weight" else "model"
        return Trajectories(self.process.blocks.encode(x), path, log_density, None, origin, is_new=False)

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold, by group."""
        buffers = {"replay": self.buffer.state_tensors(), "mcmc": self.mcmc_buffer.state_tensors()}
        return buffers | {"kept": self._kept_tensors()}

    def load_state_tensors(self, tensors: dict[str, dict[str, Tensor]]) -> None:
        """Back to a saved state."""
        self.buffer.load_state_tensors(tensors["replay"])
        self.mcmc_buffer.load_state_tensors(tensors["mcmc"])
        self._load_kept_tensors(tensors.get("kept", {}))

    def _kept_tensors(self) -> dict[str, Tensor]:
        """The batch that is used again, and how often it was; nothing where there is none."""
        if self._kept is None or self._kept.log_pf is None:
            return {}
        batch, path = self._kept, self._kept.path
        assert isinstance(path, Path)
        return {
            "tokens": batch.tokens,
            "order": path.order.contiguous(),
            "schedule": path.schedule,
            "log_density": batch.log_density,
            "log_pf": self._kept.log_pf,
            "uses": torch.tensor([self._num_uses]),
        }

    def _load_kept_tensors(self, tensors: dict[str, Tensor]) -> None:
        if tensors:
            moved = {name: tensor.to(self._device) for name, tensor in tensors.items()}
            path = Path(moved["order"], tensors["schedule"])
            self._kept = Trajectories(
                moved["tokens"], path, moved["log_density"], moved["log_pf"], "model", is_new=False, is_current=False
            )
            self._num_uses = int(tensors["uses"])
