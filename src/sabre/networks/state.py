"""Networks that look at the masked state: one pass per step."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sabre.networks.base import Chunk, Rollout, value_log_probs
from sabre.noise import NoiseLike
from sabre.processes import Path, masked_states, per_step, revealed, starts

__all__ = ["AllSites", "HasStepper", "StateNetwork", "Stepper"]


class StateNetwork(nn.Module):
    """Turns `module(state, sites) -> logits` into a sampler of trajectories.

    `module` gets masked states (rows, tokens), where `vocabulary` is the mask, and the tokens (rows, k) whose logits
    (rows, k, vocabulary) are wanted. Tokens of one step are independent given the state. A module that can go from one
    state of a rollout to the next more cheaply than from the start offers `stepper(batch)`.
    """

    def __init__(self, module: nn.Module, vocabulary: int, states_per_chunk: int) -> None:
        super().__init__()
        self.module = module
        self.vocabulary = vocabulary
        self.states_per_chunk = states_per_chunk

    def rollout(self, path: Path, noise: NoiseLike) -> Rollout:
        stepper = self._stepper(path.order.shape[0], path.order)
        all_logits, all_values = [], []
        for sites in path.order.split(path.schedule.tolist(), 1):
            logits = stepper.logits(sites)
            values = noise.categorical(logits)
            stepper.reveal(sites, values)
            all_logits.append(logits)
            all_values.append(values)
        values = torch.cat(all_values, 1)
        log_p = value_log_probs(torch.cat(all_logits, 1), values)
        return Rollout(torch.empty_like(values).scatter_(1, path.order, values), per_step(log_p, path.schedule))

    def step_log_probs(
        self, tokens: Int[Tensor, "batch tokens"], path: Path, steps: Int[Tensor, "batch chosen"] | None = None
    ) -> Float[Tensor, "batch chosen"]:
        batch, device = len(tokens), tokens.device
        if steps is None:
            steps = torch.arange(path.num_steps, device=device).expand(batch, -1)
        start = starts(path.schedule).to(device)[steps]
        size = path.schedule.to(device)[steps]
        states = masked_states(tokens, path.order, start, self.vocabulary).flatten(0, 1)
        sites, present = revealed(path.order, start, size)
        values = tokens.gather(1, sites.flatten(1)).reshape(sites.shape)
        logits = self.module(states, sites.flatten(0, 1))
        return _masked_sum(value_log_probs(logits, values.flatten(0, 1)), present.flatten(0, 1)).reshape(start.shape)

    def _stepper(self, batch: int, like: Tensor) -> "Stepper":
        if isinstance(self.module, HasStepper):
            return self.module.stepper(batch)
        return _PlainStepper(self.module, torch.full_like(like, self.vocabulary))

    def chunks(self, batch: int, num_steps: int) -> Iterator[Chunk]:
        rows = min(batch, self.states_per_chunk)
        steps = max(1, self.states_per_chunk // rows)
        for row in range(0, batch, rows):
            for step in range(0, num_steps, steps):
                yield Chunk(slice(row, row + rows), slice(step, step + steps))


@runtime_checkable
class Stepper(Protocol):
    """A batch of states on their way from all masked to all revealed."""

    def logits(self, sites: Int[Tensor, "rows k"]) -> Float[Tensor, "rows k vocabulary"]:
        """Logits of these tokens in the current states."""

    def reveal(self, sites: Int[Tensor, "rows k"], values: Int[Tensor, "rows k"]) -> None:
        """Put values where the mask was."""


@runtime_checkable
class HasStepper(Protocol):
    """A module with a shortcut from one state to the next."""

    def stepper(self, batch: int) -> Stepper:
        """Start with everything masked."""


class _PlainStepper:
    """Runs the module on the whole state every time."""

    def __init__(self, module: nn.Module, tokens: Int[Tensor, "rows tokens"]) -> None:
        self._module, self._tokens = module, tokens

    def logits(self, sites: Int[Tensor, "rows k"]) -> Float[Tensor, "rows k vocabulary"]:
        logits: Tensor = self._module(self._tokens, sites)
        return logits

    def reveal(self, sites: Int[Tensor, "rows k"], values: Int[Tensor, "rows k"]) -> None:
        self._tokens.scatter_(1, sites, values)


class AllSites(nn.Module):
    """Adapts any network that maps masked states (rows, tokens) to logits (rows, tokens, vocabulary)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, state: Int[Tensor, "rows tokens"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        logits: Tensor = self.network(state)
        return logits.gather(1, sites.unsqueeze(-1).expand(-1, -1, logits.shape[-1]))


def _masked_sum(terms: Float[Tensor, "rows k"], present: Bool[Tensor, "rows k"]) -> Float[Tensor, " rows"]:
    return torch.where(present, terms, 0).sum(1)
