"""A causal network: one pass gives a whole trajectory's log-probabilities, a key-value cache gives rollouts."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.attention import CausalBlock, KeyValueCache, View
from sabre.networks.base import Chunk, Rollout
from sabre.networks.informed import LocalFieldLogits
from sabre.networks.layers import Embedding, Linear
from sabre.networks.rotary import Rotary
from sabre.networks.slots import NONE, Slots
from sabre.noise import Noise, NoiseLike
from sabre.processes import Path, starts
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
        self.position = Embedding(2 * num_tokens + 1, width, noise) if absolute else None
        self.rotary = Rotary(layout, width // heads)
        self.blocks = nn.ModuleList(CausalBlock(width, heads, noise) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.out = Linear(width, vocabulary, noise, zero=True)
        self.informed = informed
        self.informed_scale = nn.Parameter(torch.ones(num_tokens)) if informed is not None else None

    def step_log_probs(
        self, tokens: Int[Tensor, "batch tokens"], path: Path, steps: Int[Tensor, "batch chosen"] | None = None
    ) -> Float[Tensor, "batch chosen"]:
        slots = Slots.of(path.schedule).to(tokens.device)
        logits = self._logits(tokens, path, slots, slice(0, len(slots.step)), None)
        asked = slots.asked != NONE
        values = tokens.gather(1, path.order)
        log_p = logits.gather(2, values.unsqueeze(2)).squeeze(2) - logits.logsumexp(2)
        per_step = log_p.new_zeros(len(tokens), path.num_steps).index_add(1, slots.step[asked], log_p)
        return per_step if steps is None else per_step.gather(1, steps)

    def rollout(self, path: Path, noise: NoiseLike) -> Rollout:
        batch, device = path.order.shape[0], path.order.device
        slots = Slots.of(path.schedule).to(device)
        tokens = torch.full_like(path.order, self.vocabulary)
        like, head_dim = self.value.weight, self.value.weight.shape[1] // self.heads
        caches = [KeyValueCache(batch, self.heads, len(slots.step), head_dim, like) for _ in self.blocks]
        log_pf, start = [], 0
        for n, size in enumerate(path.schedule.tolist()):
            logits = self._logits(tokens, path, slots, slice(slots.bounds[n], slots.bounds[n + 1]), caches)
            values = noise.categorical(logits)
            tokens = tokens.scatter(1, path.order[:, start : start + size], values)
            log_pf.append((logits.gather(2, values.unsqueeze(2)).squeeze(2) - logits.logsumexp(2)).sum(1))
            start += size
        return Rollout(tokens, torch.stack(log_pf, 1))

    def chunks(self, batch: int, num_steps: int) -> Iterator[Chunk]:
        num_tokens = self.rotary.cos.shape[0]
        rows = max(1, self.tokens_per_chunk // num_tokens)
        for row in range(0, batch, rows):
            yield Chunk(slice(row, row + rows), slice(0, num_steps))

    def _logits(
        self, tokens: Tensor, path: Path, slots: Slots, part: slice, caches: list[KeyValueCache] | None
    ) -> Float[Tensor, "batch asked vocabulary"]:
        """Logits of the tokens that the slots of `part` ask for; with caches, `part` continues what they hold."""
        known, asked = slots.known[part], slots.asked[part]
        num_tokens = tokens.shape[1]
        at_known = path.order[:, known.clamp(min=0)]
        at_asked = path.order[:, torch.where(asked == NONE, known, asked)]
        value = torch.where(known == NONE, self.vocabulary, tokens.gather(1, at_known))
        h = self.value(value)
        if self.position is not None:
            h = h + self.position(torch.where(known == NONE, 2 * num_tokens, num_tokens + at_known))
            h = h + self.position(at_asked)
        view = self._view(slots, part, at_asked, torch.where(known == NONE, at_asked, at_known), caches is not None)
        for number, block in enumerate(self.blocks):
            h = block(h, view, None if caches is None else caches[number])
        wanted = asked != NONE
        logits = self.out(self.norm(h if bool(wanted.all()) else h[:, wanted]))
        return logits + self._informed_logits(tokens, path, slots, part, at_asked[:, wanted])

    def _view(self, slots: Slots, part: slice, at_asked: Tensor, at_key: Tensor, cached: bool) -> View:
        if slots.is_plain:
            mask = None
        elif cached:
            mask = slots.visible()[part, : part.stop]
        else:
            mask = slots.visible()
        return View(self.rotary.turn(at_asked), self.rotary.turn(at_key), mask, slots.is_plain and not cached)

    def _informed_logits(
        self, tokens: Tensor, path: Path, slots: Slots, part: slice, at_asked: Tensor
    ) -> Tensor | float:
        if self.informed is None or self.informed_scale is None:
            return 0.0
        wanted = slots.asked[part] != NONE
        rank = torch.argsort(path.order, 1)
        first = starts(path.schedule).to(tokens.device)[slots.step[part][wanted]]
        field = self.informed(tokens, rank, at_asked, first)
        return self.informed_scale[slots.asked[part][wanted]].unsqueeze(-1) * field
