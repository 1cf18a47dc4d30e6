"""The paper's vision transformer with rotary position embedding over the lattice."""

from itertools import pairwise

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
        first, last = self.blocks[0], self.blocks[-1]
        table = first.query_key_value(self.embed.weight.unsqueeze(1).expand(-1, len(everywhere), -1), self.rotary)
        query, key, value = nn.functional.embedding(state * len(everywhere) + everywhere, table.flatten(0, 1)).chunk(3, -1)
        for block, following in pairwise(self.blocks):
            h = block(h, query, key, value)
            query, key, value = following.query_key_value(h, self.rotary).chunk(3, -1)
        h = last(_take(h, sites), _take(query, sites), key, value)
        return self.out(self.norm(h))


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
