"""The paper's vision transformer with rotary position embedding over the lattice."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.layers import Embedding, Linear
from sabre.networks.rotary import Rotary
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
        self.blocks = nn.ModuleList(_Block(width, heads, noise) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.out = Linear(width, vocabulary, noise)

    def forward(
        self, state: Int[Tensor, "rows tokens"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        everywhere = torch.arange(state.shape[1], device=state.device)
        h = self.embed(state)
        rows = self.embed.weight.unsqueeze(1).expand(-1, len(everywhere), -1)
        table = self._block(0).query_key_value(rows, self.rotary).flatten(0, 1)
        query, key, value = nn.functional.embedding(state * len(everywhere) + everywhere, table).chunk(3, -1)
        for number in range(len(self.blocks) - 1):
            h = self._block(number)(h, query, key, value)
            query, key, value = self._block(number + 1).query_key_value(h, self.rotary).chunk(3, -1)
        h = self._block(-1)(_take(h, sites), _take(query, sites), key, value)
        logits: Tensor = self.out(self.norm(h))
        return logits

    def _block(self, number: int) -> "_Block":
        block = self.blocks[number]
        assert isinstance(block, _Block)
        return block


class _Block(nn.Module):
    """h + attention, then h + MLP(norm(h)), at the tokens whose queries are given."""

    def __init__(self, width: int, heads: int, noise: Noise) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = Linear(width, 3 * width, noise), Linear(width, width, noise)
        self.up, self.down = Linear(width, 4 * width, noise), Linear(4 * width, width, noise)

    def query_key_value(
        self, h: Float[Tensor, "rows tokens width"], rotary: Rotary
    ) -> Float[Tensor, "rows tokens three_width"]:
        """Queries and keys, rotated to their positions, and values."""
        q, k, v = self.qkv(self.norm_attention(h)).chunk(3, -1)
        rotated = [rotary.everywhere(part.unflatten(-1, (self.heads, -1))).flatten(-2) for part in (q, k)]
        return torch.cat([*rotated, v], -1)

    def forward(
        self,
        h: Float[Tensor, "rows chosen width"],
        query: Float[Tensor, "rows chosen width"],
        key: Float[Tensor, "rows tokens width"],
        value: Float[Tensor, "rows tokens width"],
    ) -> Float[Tensor, "rows chosen width"]:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, value))
        attended = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        h = h + self.project(attended)
        return h + self.down(nn.functional.gelu(self.up(self.norm_mlp(h))))


def _take(h: Float[Tensor, "rows tokens width"], sites: Int[Tensor, "rows k"]) -> Float[Tensor, "rows k width"]:
    return h.gather(1, sites.unsqueeze(-1).expand(-1, -1, h.shape[-1]))
