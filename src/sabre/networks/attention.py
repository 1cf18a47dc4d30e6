"""Attention to the past, over whole sequences at once or step by step with a cache."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from sabre.networks.rotary import rotate
from sabre.networks.transformer import TransformerBlock

__all__ = ["KeyValueCache", "View", "attend_to_past"]


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


def attend_to_past(
    block: TransformerBlock, h: Float[Tensor, "batch slots width"], view: View, cache: KeyValueCache | None
) -> Float[Tensor, "batch slots width"]:
    """One block over slots that see what `view` shows; with a cache, the slots that it holds come before them."""
    q, k, v = block.query_key_value(h)
    q, k = rotate(q, *view.query_turn).transpose(1, 2), rotate(k, *view.key_turn).transpose(1, 2)
    v = v.transpose(1, 2)
    if cache is not None:
        k, v = cache.append(k, v)
    attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=view.mask, is_causal=view.is_causal)
    return block.finish(h, attended)
