"""Networks that look at the masked state: one pass per step."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sabre.errors import InvalidArgumentError
from sabre.networks.base import Chunk, Rollout, value_log_probs
from sabre.noise import NoiseLike
from sabre.processes import Path, masked_states, per_step, revealed, starts

__all__ = ["AllSites", "StateNetwork", "Walk", "Walker"]


class StateNetwork(nn.Module):
    """Turns `module(state, sites) -> logits` into a sampler of trajectories.

    `module` gets masked states (rows, tokens), where `vocabulary` is the mask, and the tokens (rows, k) whose logits
    (rows, k, vocabulary) are wanted. Tokens of one step are independent given the state. A module that knows a
    shortcut along whole trajectories offers `walk` and `follow` (`Walker`).
    """

    def __init__(self, module: nn.Module, vocabulary: int, states_per_chunk: int) -> None:
        super().__init__()
        self.module = module
        self.vocabulary = vocabulary
        self.states_per_chunk = states_per_chunk

    def rollout(self, path: Path, noise: NoiseLike) -> Rollout:
        batch, all_logits, all_values = len(path.order), [], []
        record = torch.is_grad_enabled() and batch * path.num_steps <= self.states_per_chunk
        walk = self._walk(path, record)
        with torch.no_grad():
            for sites in path.order.split(path.schedule.tolist(), 1):
                logits = walk.logits(sites)
                values = noise.categorical(logits)
                walk.reveal(sites, values)
                all_logits.append(logits)
                all_values.append(values)
        values = torch.cat(all_values, 1)
        tokens = torch.empty_like(values).scatter_(1, path.order, values)
        attached = walk.recorded(tokens)
        logits = torch.cat(all_logits, 1) if attached is None else attached
        return Rollout(tokens, per_step(value_log_probs(logits, values), path.schedule))

    def step_log_probs(
        self, tokens: Int[Tensor, "batch tokens"], path: Path, steps: Int[Tensor, "batch chosen"] | None = None
    ) -> Float[Tensor, "batch chosen"]:
        batch, device = len(tokens), tokens.device
        if steps is None and isinstance(self.module, Walker):
            logits = self.module.follow(tokens, path)
            return per_step(value_log_probs(logits, tokens.gather(1, path.order)), path.schedule)
        if steps is None:
            steps = torch.arange(path.num_steps, device=device).expand(batch, -1)
        start = starts(path.schedule).to(device)[steps]
        size = path.schedule.to(device)[steps]
        states = masked_states(tokens, path.order, start, self.vocabulary).flatten(0, 1)
        sites, present = revealed(path.order, start, size)
        values = tokens.gather(1, sites.flatten(1)).reshape(sites.shape)
        logits = self.module(states, sites.flatten(0, 1))
        return _masked_sum(value_log_probs(logits, values.flatten(0, 1)), present.flatten(0, 1)).reshape(start.shape)

    def _walk(self, path: Path, record: bool) -> "Walk":
        if isinstance(self.module, Walker):
            return self.module.walk(path, record)
        return _PlainWalk(self.module, torch.full_like(path.order, self.vocabulary), self.states_per_chunk)

    def chunks(self, batch: int, num_steps: int) -> Iterator[Chunk]:
        """Whole trajectories as far as they fit."""
        rows = max(1, min(batch, self.states_per_chunk // num_steps))
        steps = max(1, self.states_per_chunk // rows)
        for row in range(0, batch, rows):
            for step in range(0, num_steps, steps):
                yield Chunk(slice(row, row + rows), slice(step, step + steps))


@runtime_checkable
class Walk(Protocol):
    """A batch of states on their way from all masked to all revealed."""

    def logits(self, sites: Int[Tensor, "batch k"]) -> Float[Tensor, "batch k vocabulary"]:
        """Logits of these tokens in the current states."""

    def reveal(self, sites: Int[Tensor, "batch k"], values: Int[Tensor, "batch k"]) -> None:
        """Put values where the mask was."""

    def recorded(self, tokens: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens vocabulary"] | None:
        """The logits of all the walk, with a gradient, if it was recorded; `tokens` is where it has ended."""


@runtime_checkable
class Walker(Protocol):
    """A module with a shortcut along whole trajectories."""

    def walk(self, path: Path, record: bool) -> Walk:
        """Start with everything masked; `record` what a backward pass needs."""

    def follow(self, tokens: Int[Tensor, "batch tokens"], path: Path) -> Float[Tensor, "batch tokens vocabulary"]:
        """Logits of every token, in the order of the path, in the state in which it is revealed."""


class _PlainWalk:
    """Runs the module on the whole state every time, on no more states at once than fit into memory."""

    def __init__(self, module: nn.Module, tokens: Int[Tensor, "batch tokens"], states_per_chunk: int) -> None:
        self._module, self._tokens, self._states_per_chunk = module, tokens, states_per_chunk

    def logits(self, sites: Int[Tensor, "batch k"]) -> Float[Tensor, "batch k vocabulary"]:
        parts = zip(self._tokens.split(self._states_per_chunk), sites.split(self._states_per_chunk), strict=True)
        return torch.cat([self._module(*part) for part in parts])

    def reveal(self, sites: Int[Tensor, "batch k"], values: Int[Tensor, "batch k"]) -> None:
        self._tokens.scatter_(1, sites, values)

    def recorded(self, tokens: Int[Tensor, "batch tokens"]) -> None:
        """Nothing is: it would hold the activations of every step."""


class AllSites(nn.Module):
    """Adapts any network that maps masked states (rows, tokens) to logits (rows, tokens, vocabulary)."""

    def __init__(self, network: nn.Module, vocabulary: int) -> None:
        super().__init__()
        if not any(parameter.requires_grad for parameter in network.parameters()):
            raise InvalidArgumentError(f"net {type(network).__name__} has no parameters to train; give it some")
        self.network, self.vocabulary = network, vocabulary

    def forward(
        self, state: Int[Tensor, "rows tokens"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        logits: Tensor = self.network(state)
        shape = (*state.shape, self.vocabulary)
        if not isinstance(logits, Tensor) or logits.shape != shape or not logits.is_floating_point():
            is_tensor = isinstance(logits, Tensor)
            found = f"{logits.dtype}, shape {tuple(logits.shape)}" if is_tensor else type(logits).__name__
            raise InvalidArgumentError(
                f"net {type(self.network).__name__} returned {found} for states of shape {tuple(state.shape)}; return "
                f"one logit per value of each token, floats of shape {shape}"
            )
        return logits.gather(1, sites.unsqueeze(-1).expand(-1, -1, logits.shape[-1]))


def _masked_sum(terms: Float[Tensor, "rows k"], present: Bool[Tensor, "rows k"]) -> Float[Tensor, " rows"]:
    return torch.where(present, terms, 0).sum(1)
