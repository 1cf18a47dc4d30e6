"""The transformer block that the ViT and the causal network share; how they attend is theirs."""

from jaxtyping import Float
from torch import Tensor, nn

from sabre.networks.layers import Linear
from sabre.networks.products import linear
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

    def query(self, h: Float[Tensor, "rows chosen width"]) -> Float[Tensor, "rows chosen heads head_dim"]:
        """The first part of `query_key_value`, for tokens that only ask."""
        width = h.shape[-1]
        q = linear(self.norm_attention(h), self.qkv.weight[:width], self.qkv.bias[:width])
        return q.unflatten(-1, (self.heads, -1))

    def key_value(self, h: Float[Tensor, "rows tokens width"]) -> tuple[Tensor, Tensor]:
        """The other parts, for tokens that are only asked."""
        width = h.shape[-1]
        kv = linear(self.norm_attention(h), self.qkv.weight[width:], self.qkv.bias[width:])
        k, v = kv.unflatten(-1, (2, self.heads, -1)).unbind(-3)
        return k, v

    def finish(
        self, h: Float[Tensor, "rows chosen width"], attended: Float[Tensor, "rows heads chosen head_dim"]
    ) -> Float[Tensor, "rows chosen width"]:
        """What comes after attention."""
        h = h + self.project(attended.transpose(1, 2).flatten(2))
        return h + self.down(nn.functional.gelu(self.up(self.norm_mlp(h))))
