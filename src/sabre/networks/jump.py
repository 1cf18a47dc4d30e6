"""A sampler that jumps: annealed jumps whose rates a locally equivariant network has learnt."""

import copy
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.errors import InvalidArgumentError
from sabre.networks.base import Chunk
from sabre.networks.equivariant import EquivariantNetwork
from sabre.noise import NoiseLike
from sabre.processes import jumps
from sabre.processes.jumps import AnnealedJumps, Moments
from sabre.targets import AbstractTarget

__all__ = ["JumpNetwork", "Simulation"]

PerValue = Float[Tensor, "batch sites categories"]


class Simulation(NamedTuple):
    """Final states with their log-weights, and, if recorded, all states from t = 0 to t = 1, each with its time."""

    x: Int[Tensor, "batch dim"]
    log_weight: Float[Tensor, " batch"]
    states: Int[Tensor, "visited dim"]
    times: Float[Tensor, " visited"]


class JumpNetwork(nn.Module):
    """LEAPS (Holderrieth, Albergo, Jaakkola 2025) with E[w] = Z for every network, number of steps and kappa > 0.

        log w = d log C + log_density(x_N) + sum_n log p_B(x_n | x_{n+1}) - log p_F(x_{n+1} | x_n)

    In each step the classes of sites that do not interact move one after the other, backwards in the opposite order.
    Training makes the residual of the continuity equation small, at states and times of any origin:

        r(x, t) = log_density(x) - f(t) - K_t(x)         (zero everywhere: all weights are equal, for short steps)
    """

    single: Tensor

    def __init__(
        self, target: AbstractTarget, module: EquivariantNetwork, process: AnnealedJumps, states_per_chunk: int
    ) -> None:
        super().__init__()
        pairwise = target.pairwise
        if pairwise is None:
            raise InvalidArgumentError(
                f"target {target.name!r} is not a sum over pairs of sites, so its jumps have no rates; use another net"
            )
        if not bool(pairwise.field.isfinite().all()):
            raise InvalidArgumentError(
                f"target {target.name!r} forbids values; annealed jumps start from the uniform law, use another net"
            )
        self.pairwise, self.module, self.process = pairwise, module, process
        self.states_per_chunk = states_per_chunk
        self.classes = jumps.independent_sites(pairwise)
        self.register_buffer("single", pairwise.field.double(), persistent=False)
        agree = float(pairwise.coupling.sum()) / pairwise.num_categories
        self.start_rate = pairwise.constant + agree + float(pairwise.field.mean(1).sum())

    def with_process(self, process: AnnealedJumps) -> "JumpNetwork":
        """The same network, weights included, with other steps."""
        other = copy.copy(self)
        other.process = process
        return other

    def step_log_probs(
        self, tokens: Int[Tensor, "batch dim"], path: Moments, steps: Int[Tensor, "batch chosen"] | None = None
    ) -> Float[Tensor, "batch 1"]:
        """K_t(x) + f(t), which is to become log_density(x) as log p is to become log_density elsewhere."""
        del steps
        potential, log_m = self._local(tokens, path.times, torch.arange(tokens.shape[1], device=tokens.device))
        return (jumps.growth(jumps.flow(potential, tokens), log_m) + self.log_z_rate(path.times)).unsqueeze(1)

    def log_z_rate(self, times: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """f(t), which learns d log Z_t / dt; at t = 0 it is exact."""
        return self.start_rate + self.pairwise.dim * times * self.module.mean_rate(times)

    def chunks(self, batch: int, num_steps: int) -> Iterator[Chunk]:
        """Rows as far as they fit; each is one step."""
        for row in range(0, batch, self.states_per_chunk):
            yield Chunk(slice(row, row + self.states_per_chunk), slice(0, num_steps))

    @torch.no_grad()
    def simulate(self, batch: int, noise: NoiseLike, *, record: bool = False) -> Simulation:
        """From uniform states to final ones. Resampled rows are not independent."""
        dim, categories, last = self.pairwise.dim, self.pairwise.num_categories, self.process.num_steps - 1
        x = noise.integers(categories, (batch, dim))
        log_weight = torch.full((batch,), dim * math.log(categories), dtype=torch.float64, device=x.device)
        visited = [x]
        for step in range(self.process.num_steps):
            log_weight = log_weight - self._annealed(x, step)
            for sites in self.classes:
                x, log_pf, log_pb = self._move(x, step, sites, 1, noise)
                log_weight = log_weight + log_pb - log_pf
            log_weight = log_weight + self._annealed(x, step + 1)
            if step < last:
                rows, log_weight = jumps.resample(log_weight, self.process.resample_below, noise)
                x = x[rows]
            visited.append(x)
        return self._simulation(x, log_weight, visited if record else [])

    @torch.no_grad()
    def simulate_back(self, x: Int[Tensor, "batch dim"], noise: NoiseLike, *, record: bool = False) -> Simulation:
        """Log-weights of ways that end in given states: draws of p_B, without resampling."""
        end, visited = x, [x]
        log_weight = self.pairwise.dim * math.log(self.pairwise.num_categories) + self.pairwise.log_density(x).double()
        for step in reversed(range(self.process.num_steps)):
            for sites in reversed(self.classes):
                x, log_pb, log_pf = self._move(x, step, sites, -1, noise)
                log_weight = log_weight + log_pb - log_pf
            visited.insert(0, x)
        return self._simulation(end, log_weight, visited if record else [])

    def _simulation(self, x: Tensor, log_weight: Tensor, visited: list[Tensor]) -> Simulation:
        times = self.process.times[: len(visited)].to(x.device).repeat_interleave(len(x))
        return Simulation(x, log_weight, torch.cat([x[:0], *visited]), times)

    def _annealed(self, x: Int[Tensor, "batch dim"], step: int) -> Float[Tensor, " batch"]:
        return float(self.process.times[step]) * self.pairwise.log_density(x).double()

    def _move(
        self, x: Int[Tensor, "batch dim"], step: int, sites: Int[Tensor, " sites"], sign: int, noise: NoiseLike
    ) -> tuple[Int[Tensor, "batch dim"], Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Draw y from the kernel of sign G; (y, log p(y | x), log of the kernel of -sign G from y to x)."""
        sites = sites.to(x.device)
        there = self._kernel(x, step, sites, sign)
        value = noise.categorical(there)
        y = x.clone()
        y[:, sites] = value
        back = self._kernel(y, step, sites, -sign)
        return y, _picked(there, value), _picked(back, x[:, sites])

    def _kernel(self, x: Int[Tensor, "batch dim"], step: int, sites: Int[Tensor, " sites"], sign: int) -> PerValue:
        """The transition law of each of these sites, at the middle of the step."""
        start, end = self.process.times[step : step + 2].tolist()
        times = torch.full((len(x),), (start + end) / 2, dtype=torch.float64, device=x.device)
        potential, log_m = self._local(x, times, sites)
        return jumps.site_kernel(sign * potential, log_m, x[:, sites], end - start, self.process.kappa)

    def _local(
        self, x: Int[Tensor, "batch dim"], times: Float[Tensor, " batch"], sites: Int[Tensor, " sites"]
    ) -> tuple[PerValue, PerValue]:
        """U and log m. The untrained U counts each coupling half at either end, which solves t = 0 exactly."""
        field = self.pairwise.local_field(x, sites.expand(len(x), -1)).double()
        untrained = (field + self.single[sites]) / 2
        potential = untrained + self.module(x, times, sites, field).double()
        return potential, jumps.conditional(field, times)


def _picked(log_p: PerValue, value: Int[Tensor, "batch sites"]) -> Float[Tensor, " batch"]:
    return log_p.gather(-1, value.unsqueeze(-1)).squeeze(-1).sum(1)
