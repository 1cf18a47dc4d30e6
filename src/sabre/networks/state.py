"""Networks that look at the masked state: one pass per step."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sabre.networks.base import Chunk, Rollout
from sabre.noise import NoiseLike
from sabre.processes import Path, masked_states, revealed, starts

__all__ = ["AllSites", "StateNetwork"]


class StateNetwork(nn.Module):
    """Turns `module(state, sites) -> logits` into a sampler of trajectories.

    `module` gets masked states (rows, tokens), where `vocabulary` is the mask, and the tokens (rows, k) whose logits
    (rows, k, vocabulary) are wanted. Tokens of one step are independent given the state.
    """

    def __init__(self, module: nn.Module, vocabulary: int, states_per_chunk: int) -> None:
        super().__init__()
        self.module = module
        self.vocabulary = vocabulary
        self.states_per_chunk = states_per_chunk

    def rollout(self, path: Path, noise: NoiseLike) -> Rollout:
        tokens = torch.full_like(path.order, self.vocabulary)
        log_pf, start = [], 0
        for size in path.schedule.tolist():
            sites = path.order[:, start : start + size]
            logits = self.module(tokens, sites)
            values = noise.categorical(logits)
            tokens = tokens.scatter(1, sites, values)
            log_pf.append(_log_prob(logits, values).sum(1))
            start += size
        return Rollout(tokens, torch.stack(log_pf, 1))

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
        return _masked_sum(_log_prob(logits, values.flatten(0, 1)), present.flatten(0, 1)).reshape(start.shape)

    def chunks(self, batch: int, num_steps: int) -> Iterator[Chunk]:
        rows = min(batch, self.states_per_chunk)
        steps = max(1, self.states_per_chunk // rows)
        for row in range(0, batch, rows):
            for step in range(0, num_steps, steps):
                yield Chunk(slice(row, row + rows), slice(step, step + steps))


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


def _log_prob(
    logits: Float[Tensor, "rows k vocabulary"], values: Int[Tensor, "rows k"]
) -> Float[Tensor, "rows k"]:
    return logits.gather(2, values.unsqueeze(2)).squeeze(2) - logits.logsumexp(2)


def _masked_sum(terms: Float[Tensor, "rows k"], present: Bool[Tensor, "rows k"]) -> Float[Tensor, " rows"]:
    return torch.where(present, terms, 0).sum(1)
