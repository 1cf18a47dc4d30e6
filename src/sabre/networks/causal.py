"""A causal network: one pass gives a whole trajectory's log-probabilities, a key-value cache gives rollouts."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.attention import KeyValueCache, View, attend_to_past
from sabre.networks.base import Chunk, Rollout, value_log_probs
from sabre.networks.informed import LocalFieldLogits
from sabre.networks.layers import Embedding, Linear
from sabre.networks.rotary import Rotary
from sabre.networks.slots import NONE, Slots
from sabre.networks.transformer import TransformerBlock
from sabre.noise import Noise, NoiseLike
from sabre.processes import Path, per_step, starts
from sabre.targets import Layout

__all__ = ["CausalNetwork"]


class CausalNetwork(nn.Module):
    """Reads the revealed tokens in their order and predicts the next ones.

    A *slot* takes in the value and position of a token that the step before revealed and answers for the position of
    a token that its own step reveals (`Slots`). Queries are rotated to the position that is asked about and keys to
    the position that is known, so attention sees displacements. A slot sees the slots of its own and earlier steps,
    hence only what was revealed before its step.

        logits = W norm(h) + s_n (local field of the revealed neighbours)      (second term: `informed`, optional)
    """

    def __init__(
        self,
        layout: Layout,
        vocabulary: int,
        noise: Noise,
        *,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        absolute: bool = True,
        informed: LocalFieldLogits | None = None,
        tokens_per_chunk: int = 2**16,
    ) -> None:
        super().__init__()
        num_tokens = len(layout.coords)
        self.vocabulary, self.heads, self.tokens_per_chunk = vocabulary, heads, tokens_per_chunk
        self.value = Embedding(vocabulary + 1, width, noise)
        self.position = Embedding(2 * num_tokens + 1, width, noise, scale=0.1) if absolute else None
        self.rotary = Rotary(layout, width // heads)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, noise) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.out = Linear(width, vocabulary, noise, zero=True)
        self.informed = informed
        self.informed_scale = nn.Parameter(torch.ones(num_tokens)) if informed is not None else None

    def step_log_probs(
        self, tokens: Int[Tensor, "batch tokens"], path: Path, steps: Int[Tensor, "batch chosen"] | None = None
    ) -> Float[Tensor, "batch chosen"]:
        reading = self._reading(path)
        logits = self._logits(tokens, reading, slice(0, len(reading.slots.step)), None)
        log_p = per_step(value_log_probs(logits, tokens.gather(1, path.order)), path.schedule)
        return log_p if steps is None else log_p.gather(1, steps)

    @torch.no_grad()
    def rollout(self, path: Path, noise: NoiseLike) -> Rollout:
        reading, width = self._reading(path), self.value.weight.shape[1]
        bounds, batch = reading.slots.bounds, path.order.shape[0]
        caches = [
            KeyValueCache(batch, self.heads, bounds[-1], width // self.heads, self.value.weight) for _ in self.blocks
        ]
        tokens = torch.full_like(path.order, self.vocabulary)
        all_logits = []
        for n, sites in enumerate(path.order.split(path.schedule.tolist(), 1)):
            logits = self._logits(tokens, reading, slice(bounds[n], bounds[n + 1]), caches)
            tokens.scatter_(1, sites, noise.categorical(logits))
            all_logits.append(logits)
        log_p = value_log_probs(torch.cat(all_logits, 1), tokens.gather(1, path.order))
        return Rollout(tokens, per_step(log_p, path.schedule))

    def chunks(self, batch: int, num_steps: int) -> Iterator[Chunk]:
        num_tokens = self.rotary.cos.shape[0]
        rows = max(1, self.tokens_per_chunk // num_tokens)
        for row in range(0, batch, rows):
            yield Chunk(slice(row, row + rows), slice(0, num_steps))

    def _reading(self, path: Path) -> "_Reading":
        slots = Slots.of(path.schedule).to(path.order.device)
        known, asked = slots.known, slots.asked
        at_asked = path.order[:, torch.where(asked == NONE, known, asked)]
        at_known = torch.where(known == NONE, at_asked, path.order[:, known.clamp(min=0)])
        return _Reading(
            slots,
            at_known,
            at_asked,
            self.rotary.turn(at_asked),
            self.rotary.turn(at_known),
            torch.argsort(path.order, 1),
            starts(path.schedule).to(path.order.device)[slots.step],
        )

    def _logits(
        self, tokens: Tensor, reading: "_Reading", part: slice, caches: list[KeyValueCache] | None
    ) -> Float[Tensor, "batch asked vocabulary"]:
        """Logits of the tokens that the slots of `part` ask for; with caches, `part` continues what they hold."""
        slots = reading.slots
        known, at_known, at_asked = slots.known[part], reading.at_known[:, part], reading.at_asked[:, part]
        h = self.value(torch.where(known == NONE, self.vocabulary, tokens.gather(1, at_known)))
        if self.position is not None:
            num_tokens = tokens.shape[1]
            h = h + self.position(torch.where(known == NONE, 2 * num_tokens, num_tokens + at_known))
            h = h + self.position(at_asked)
        view = reading.view(part, caches is not None)
        for number, block in enumerate(self.blocks):
            assert isinstance(block, TransformerBlock)
            h = attend_to_past(block, h, view, None if caches is None else caches[number])
        ranks, start = slots.asked[part], reading.start[part]
        if not slots.is_plain:
            wanted = ranks != NONE
            h, at_asked, ranks, start = h[:, wanted], at_asked[:, wanted], ranks[wanted], start[wanted]
        logits: Tensor = self.out(self.norm(h))
        if self.informed is not None and self.informed_scale is not None:
            field = self.informed(tokens, reading.rank, at_asked, start)
            logits = logits + self.informed_scale[ranks].unsqueeze(-1) * field
        return logits


class _Reading(NamedTuple):
    """What a path alone determines about how its tokens are read: one entry per slot."""

    slots: Slots
    at_known: Int[Tensor, "batch slots"]
    at_asked: Int[Tensor, "batch slots"]
    query_turn: tuple[Tensor, Tensor]
    key_turn: tuple[Tensor, Tensor]
    rank: Int[Tensor, "batch tokens"]
    start: Int[Tensor, " slots"]

    def view(self, part: slice, cached: bool) -> View:
        """What the slots of `part` may attend to, with the earlier ones in a cache or all of them at hand."""
        cos_q, sin_q = self.query_turn
        cos_k, sin_k = self.key_turn
        mask = None if self.slots.is_plain else self.slots.visible()[part, : part.stop]
        turns = (cos_q[:, part], sin_q[:, part]), (cos_k[:, part], sin_k[:, part])
        return View(*turns, mask, self.slots.is_plain and not cached)
