"""Samplers with weights: what evaluation asks of a model, however it makes its samples."""

import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.metrics import Estimate, Progress, importance_log_z
from sabre.networks import JumpNetwork, Network, Simulation
from sabre.noise import Noise
from sabre.objectives import log_likelihood
from sabre.processes import MaskedDiffusion
from sabre.targets import AbstractTarget

__all__ = ["JumpSampler", "MaskedSampler", "WeightedSampler"]

_BATCH = 1024
_POPULATION = 256
_FEWEST_POPULATIONS = 8
_RESAMPLED_BELOW = 0.5


@runtime_checkable
class WeightedSampler(Protocol):
    """Draws states together with log-weights, E[w] = Z, and gives log-weights to states that come from elsewhere."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""

    def draw(
        self, n: int, noise: Noise, progress: Progress | None = None
    ) -> tuple[Int[Tensor, "n dim"], Float[Tensor, " n"]]:
        """n samples of the model and the log-weights of their trajectories."""

    def weigh(self, x: Int[Tensor, "n dim"], noise: Noise, progress: Progress | None = None) -> Float[Tensor, " n"]:
        """Log-weights of trajectories that are drawn backwards from given final states."""

    def extra(self, n: int, noise: Noise, progress: Progress | None = None) -> dict[str, Estimate]:
        """Figures that only this kind of sampler has, from n samples."""


@dataclass(frozen=True)
class MaskedSampler:
    """Masked diffusion: log w = log_density - log_pf of the trajectory."""

    network: Network
    process: MaskedDiffusion
    target: AbstractTarget
    batch: int = _BATCH

    @property
    def device(self) -> torch.device:
        return next(iter(self.network.parameters())).device

    @torch.no_grad()
    def draw(
        self, n: int, noise: Noise, progress: Progress | None = None
    ) -> tuple[Int[Tensor, "n dim"], Float[Tensor, " n"]]:
        """Batch by batch, path first."""
        samples, log_weights = [], []
        for start in range(0, n, self.batch):
            path = self.process.draw_path(min(self.batch, n - start), noise, noise.device)
            tokens, log_pf = self.network.rollout(path, noise)
            x = self.process.blocks.decode(tokens)
            samples.append(x)
            log_weights.append(self.target.log_density(x).double() - log_pf.double().sum(1))
            report(progress, "samples", (start + self.batch) / n)
        return torch.cat(samples), torch.cat(log_weights)

    def weigh(self, x: Int[Tensor, "n dim"], noise: Noise, progress: Progress | None = None) -> Float[Tensor, " n"]:
        """One pass along the trajectories that a random order makes of the states."""
        log_weights = []
        for start in range(0, len(x), self.batch):
            part = x[start : start + self.batch]
            path = self.process.draw_path(len(part), noise, noise.device)
            log_pf = log_likelihood(self.network, self.process.blocks.encode(part), path)
            log_weights.append(self.target.log_density(part).double() - log_pf)
            report(progress, "true samples backwards", (start + self.batch) / len(x))
        return torch.cat(log_weights)

    def extra(self, n: int, noise: Noise, progress: Progress | None = None) -> dict[str, Estimate]:
        """None."""
        del n, noise, progress
        return {}


@dataclass(frozen=True)
class JumpSampler:
    """Annealed jumps: the weights are those of whole chains, forwards and back."""

    network: JumpNetwork
    target: AbstractTarget
    batch: int = _BATCH

    @property
    def device(self) -> torch.device:
        return next(iter(self.network.parameters())).device

    def draw(
        self, n: int, noise: Noise, progress: Progress | None = None
    ) -> tuple[Int[Tensor, "n dim"], Float[Tensor, " n"]]:
        """Batch by batch, without resampling inside of them."""
        runs: list[Simulation] = []
        for start in range(0, n, self.batch):
            runs.append(self.network.simulate(min(self.batch, n - start), noise))
            report(progress, "samples", (start + self.batch) / n)
        return torch.cat([found.x for found in runs]), torch.cat([found.log_weight for found in runs])

    def weigh(self, x: Int[Tensor, "n dim"], noise: Noise, progress: Progress | None = None) -> Float[Tensor, " n"]:
        """Chains backwards from the states."""
        log_weights = []
        for start in range(0, len(x), self.batch):
            log_weights.append(self.network.simulate_back(x[start : start + self.batch], noise).log_weight)
            report(progress, "true samples backwards", (start + self.batch) / len(x))
        return torch.cat(log_weights)

    def extra(self, n: int, noise: Noise, progress: Progress | None = None) -> dict[str, Estimate]:
        """log Z with resampling: each population gives one unbiased estimate of Z, and their spread the error."""
        network = self.network.with_process(replace(self.network.process, resample_below=_RESAMPLED_BELOW))
        size = max(2, min(_POPULATION, n // _FEWEST_POPULATIONS))
        populations = []
        for start in range(0, n - size + 1, size):
            log_weight = network.simulate(size, noise).log_weight
            populations.append(log_weight.logsumexp(0) - math.log(size))
            report(progress, "resampled populations", (start + size) / n)
        return {"log_z_resampled": importance_log_z(torch.stack(populations))}


def report(progress: Progress | None, stage: str, share: float) -> None:
    """Tell how far a stage is, if somebody asked."""
    if progress is not None:
        progress(stage, min(1.0, share))
