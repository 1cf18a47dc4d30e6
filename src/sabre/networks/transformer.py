"""The transformer block that the ViT and the causal network share; how they attend is theirs."""

from jaxtyping import Float
from torch import Tensor, nn

from sabre.networks.layers import Linear
from sabre.noise import Noise

__all__ = ["TransformerBlock"]


class TransformerBlock(nn.Module):
    """Pre-norm: h + project(attention(query_key_value(norm(h)))), then h + MLP(norm(h))."""

    def __init__(self, width: int, heads: int, noise: Noise) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = Linear(width, 3 * width, noise), Linear(width, width, noise)
        self.up, self.down = Linear(width, 4 * width, noise), Linear(4 * width, width, noise)

    def query_key_value(self, h: Float[Tensor, "rows tokens width"]) -> tuple[Tensor, Tensor, Tensor]:
        """Each (rows, tokens, heads, head_dim), not yet rotated."""
        q, k, v = self.qkv(self.norm_attention(h)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        return q, k, v

    def forward(
        self,
        h: Float[Tensor, "rows chosen width"],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "rows chosen width"]:
        """Attend from the rotated queries (rows, heads, chosen, head_dim) and finish the block at their tokens."""
        attended = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=is_causal)
        h = h + self.project(attended.transpose(1, 2).flatten(2))
        return h + self.down(nn.functional.gelu(self.up(self.norm_mlp(h))))
