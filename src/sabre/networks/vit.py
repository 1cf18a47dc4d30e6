"""The paper's vision transformer with rotary position embedding over the lattice."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.layers import Embedding, Linear
from sabre.networks.products import attention
from sabre.networks.rotary import Rotary, rotate
from sabre.networks.transformer import TransformerBlock
from sabre.noise import Noise
from sabre.targets import Layout

__all__ = ["ViT"]


class ViT(nn.Module):
    """Pre-norm transformer blocks over the tokens of the masked state.

    Two identities save most of the work. Before the first block a token is its value alone, so its query, key and
    value are looked up in a table with one row per value and position. After the last attention only the tokens that
    are about to be revealed matter, so the last block attends and computes for those alone.
    """

    def __init__(
        self, layout: Layout, vocabulary: int, noise: Noise, *, width: int = 64, depth: int = 2, heads: int = 4
    ) -> None:
        super().__init__()
        self.embed = Embedding(vocabulary + 1, width, noise)
        self.rotary = Rotary(layout, width // heads)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, noise) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.out = Linear(width, vocabulary, noise)

    def forward(
        self, state: Int[Tensor, "rows tokens"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        first, last = self._block(0), self._block(-1)
        h = self.embed(state)
        if first is last:
            return self._answer(last, h, sites)
        h = self._attend(first, h, *self._looked_up(first, state))
        for number in range(1, len(self.blocks) - 1):
            block = self._block(number)
            q, k, v = block.query_key_value(h)
            h = self._attend(block, h, self.rotary.everywhere(q), self.rotary.everywhere(k), v)
        return self._answer(last, h, sites)

    def _looked_up(
        self, block: TransformerBlock, state: Int[Tensor, "rows tokens"]
    ) -> tuple[Float[Tensor, "rows tokens heads head_dim"], ...]:
        """Rotated queries and keys, and values, of tokens that are nothing but a value at a position."""
        everywhere = torch.arange(state.shape[1], device=state.device)
        q, k, v = block.query_key_value(self.embed.weight.unsqueeze(1).expand(-1, len(everywhere), -1))
        table = torch.cat([self.rotary.everywhere(q), self.rotary.everywhere(k), v], 2).flatten(2).flatten(0, 1)
        found = nn.functional.embedding(state * len(everywhere) + everywhere, table)
        return found.unflatten(-1, (3, block.heads, -1)).unbind(2)

    def _answer(
        self, block: TransformerBlock, h: Float[Tensor, "rows tokens width"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        """The last block and the logits, at the tokens that are asked for."""
        chosen = h.gather(1, sites.unsqueeze(-1).expand(-1, -1, h.shape[-1]))
        query = rotate(block.query(chosen), *self.rotary.turn(sites))
        key, value = block.key_value(h)
        logits: Tensor = self.out(self.norm(self._attend(block, chosen, query, self.rotary.everywhere(key), value)))
        return logits

    def _attend(self, block: TransformerBlock, h: Tensor, *parts: Tensor) -> Tensor:
        return block.finish(h, attention(*(part.transpose(1, 2) for part in parts)))

    def _block(self, number: int) -> TransformerBlock:
        block = self.blocks[number]
        assert isinstance(block, TransformerBlock)
        return block
