"""A transformer block that attends to the past, whole sequences at once or step by step with a cache."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from sabre.networks.layers import Linear
from sabre.networks.rotary import rotate
from sabre.noise import Noise

__all__ = ["CausalBlock", "KeyValueCache", "View"]


class View(NamedTuple):
    """What the slots of one pass see: rotations of queries and keys, and the mask (None: everything, or causal)."""

    query_turn: tuple[Tensor, Tensor]
    key_turn: tuple[Tensor, Tensor]
    mask: Bool[Tensor, "queries keys"] | None
    is_causal: bool


class KeyValueCache:
    """Preallocated keys and values of the slots that a rollout has passed."""

    def __init__(self, batch: int, heads: int, slots: int, head_dim: int, like: Tensor) -> None:
        self._keys = like.new_empty(batch, heads, slots, head_dim)
        self._values = like.new_empty(batch, heads, slots, head_dim)
        self._end = 0

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store the newest slots; returns all that are known so far."""
        begin, self._end = self._end, self._end + key.shape[2]
        self._keys[:, :, begin : self._end] = key
        self._values[:, :, begin : self._end] = value
        return self._keys[:, :, : self._end], self._values[:, :, : self._end]


class CausalBlock(nn.Module):
    """h + attention(norm(h)), then h + MLP(norm(h))."""

    def __init__(self, width: int, heads: int, noise: Noise) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = Linear(width, 3 * width, noise), Linear(width, width, noise)
        self.up, self.down = Linear(width, 4 * width, noise), Linear(4 * width, width, noise)

    def forward(
        self, h: Float[Tensor, "batch slots width"], view: View, cache: KeyValueCache | None
    ) -> Float[Tensor, "batch slots width"]:
        q, k, v = self.qkv(self.norm_attention(h)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        q, k = rotate(q, *view.query_turn).transpose(1, 2), rotate(k, *view.key_turn).transpose(1, 2)
        v = v.transpose(1, 2)
        if cache is not None:
            k, v = cache.append(k, v)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=view.mask, is_causal=view.is_causal)
        h = h + self.project(attended.transpose(1, 2).flatten(2))
        return h + self.down(nn.functional.gelu(self.up(self.norm_mlp(h))))
