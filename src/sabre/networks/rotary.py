"""Rotary position embeddings over the axes of a layout; exactly translation-equivariant on a torus."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.targets import Layout

__all__ = ["Rotary", "rotate"]


class Rotary(nn.Module):
    """Rotates pairs of channels by an angle that grows with the position, so that dot products see differences only.

    The pairs are shared out over the axes. On a torus of side L the angles are 2 pi n p / L with integer n, which
    makes every attention score a function of the displacement on the torus. On other layouts the wavelengths grow
    geometrically from 2 pi to 2 pi times four times the length of the axis.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, layout: Layout, head_dim: int) -> None:
        super().__init__()
        num_axes = len(layout.shape)
        pairs = [head_dim // 2 // num_axes + (axis < head_dim // 2 % num_axes) for axis in range(num_axes)]
        angles = [
            layout.coords[:, axis : axis + 1] * _frequencies(layout, axis, pairs[axis]) for axis in range(num_axes)
        ]
        angle = torch.cat(angles, 1)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def turn(self, position: Int[Tensor, "batch tokens"]) -> tuple[Tensor, Tensor]:
        """(cos, sin) at the given positions, for `rotate` on channels (batch, tokens, heads, head_dim)."""
        return self.cos[position].unsqueeze(2), self.sin[position].unsqueeze(2)

    def everywhere(self, x: Float[Tensor, "rows tokens heads head_dim"]) -> Float[Tensor, "rows tokens heads head_dim"]:
        """Rotate channels that are given for all positions in turn."""
        return rotate(x, self.cos.unsqueeze(1), self.sin.unsqueeze(1))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(a, b) -> (a cos - b sin, a sin + b cos) on the two halves of the channels."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def _frequencies(layout: Layout, axis: int, pairs: int) -> Float[Tensor, " pairs"]:
    length = layout.shape[axis]
    if layout.kind == "torus":
        modes = torch.logspace(0, math.log2(max(1, length // 2)), pairs, base=2).round()
        return 2 * math.pi * modes / length
    return (4 * length) ** (-torch.arange(pairs) / max(1, pairs))
