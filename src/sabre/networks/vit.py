"""The paper's vision transformer with rotary position embedding over the lattice."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.layers import Embedding, Linear
from sabre.networks.rotary import Rotary
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
        everywhere = torch.arange(state.shape[1], device=state.device)
        rows = self.embed.weight.unsqueeze(1).expand(-1, len(everywhere), -1)
        table = torch.cat(self._rotated(self._block(0), rows), -1).flatten(0, 1)
        parts = nn.functional.embedding(state * len(everywhere) + everywhere, table).chunk(3, -1)
        h = self.embed(state)
        for number in range(len(self.blocks) - 1):
            h = self._attend(self._block(number), h, *parts)
            parts = self._rotated(self._block(number + 1), h)
        query, key, value = parts
        h = self._attend(self._block(-1), _take(h, sites), _take(query, sites), key, value)
        logits: Tensor = self.out(self.norm(h))
        return logits

    def _rotated(
        self, block: TransformerBlock, h: Float[Tensor, "rows tokens width"]
    ) -> tuple[Float[Tensor, "rows tokens width"], ...]:
        """Queries and keys, rotated to their positions, and values."""
        q, k, v = block.query_key_value(h)
        return self.rotary.everywhere(q).flatten(-2), self.rotary.everywhere(k).flatten(-2), v.flatten(-2)

    def _attend(self, block: TransformerBlock, h: Tensor, *parts: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (block.heads, -1)).transpose(1, 2) for part in parts)
        out: Tensor = block(h, q, k, v)
        return out

    def _block(self, number: int) -> TransformerBlock:
        block = self.blocks[number]
        assert isinstance(block, TransformerBlock)
        return block


def _take(h: Float[Tensor, "rows tokens width"], sites: Int[Tensor, "rows k"]) -> Float[Tensor, "rows k width"]:
    return h.gather(1, sites.unsqueeze(-1).expand(-1, -1, h.shape[-1]))
