"""Linear maps and embeddings with explicit randomness."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.products import linear
from sabre.noise import Noise

__all__ = ["Embedding", "Linear"]


class Linear(nn.Module):
    """y = W x + b, W and b uniform in +-1/sqrt(fan in), or zero."""

    def __init__(self, num_in: int, num_out: int, noise: Noise, *, zero: bool = False) -> None:
        super().__init__()
        bound = 0.0 if zero else 1 / math.sqrt(num_in)
        self.weight = nn.Parameter(_uniform(noise, (num_out, num_in), bound))
        self.bias = nn.Parameter(_uniform(noise, (num_out,), bound))

    def forward(self, x: Float[Tensor, "*batch num_in"]) -> Float[Tensor, "*batch num_out"]:
        return linear(x, self.weight, self.bias)


class Embedding(nn.Module):
    """One vector per integer, normal with the given standard deviation."""

    def __init__(self, num_items: int, width: int, noise: Noise, scale: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter((scale * noise.normal((num_items, width))).float().cpu())

    def forward(self, index: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch width"]:
        return nn.functional.embedding(index, self.weight)


def _uniform(noise: Noise, shape: tuple[int, ...], bound: float) -> Tensor:
    return ((2 * noise.uniform(shape) - 1) * bound).float().cpu()
