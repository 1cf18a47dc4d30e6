"""All randomness of sabre: one explicit, checkpointable generator per purpose."""

import hashlib
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Noise", "NoiseLike"]


@runtime_checkable
class NoiseLike(Protocol):
    """The discrete choices that kernels, processes and buffers may make.

    The first axis of every draw is the batch: rows are independent of each other. `Noise` draws them, `Tape`
    (`sabre.tape`) enumerates them.
    """

    def categorical(self, logits: Float[Tensor, "batch *rest categories"]) -> Int[Tensor, "batch *rest"]:
        """Draw k with probability softmax(logits)_k, each row and element on its own."""

    def bernoulli(self, probability: Float[Tensor, "batch *rest"]) -> Bool[Tensor, "batch *rest"]:
        """True with the given probability."""

    def integers(self, high: int, shape: Sequence[int]) -> Int[Tensor, "..."]:
        """Uniform on {0..high-1}; `shape` starts with the batch."""

    def permutation(self, batch: int, length: int) -> Int[Tensor, "batch length"]:
        """A uniformly random permutation of 0..length-1 per row."""

    def index(self, log_weights: Float[Tensor, " items"], batch: int) -> Int[Tensor, " batch"]:
        """Draw `batch` positions with replacement, with probability softmax(log_weights)."""


class Noise:
    """A seeded stream of random numbers that can be saved and restored bit for bit.

    Uniforms have 53 random bits and categories are drawn by inversion of the cumulative sum in float64, so that
    events of probability down to about 1e-16 keep their probability. The numbers come from the CPU and are moved to
    `device`, so that a stream is the same on every device and goes on where it was saved on another one.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._device = torch.device(device)

    @classmethod
    def named(cls, seed: int, name: str, device: torch.device | str = "cpu") -> "Noise":
        """The stream for one purpose of one run: streams of different names are unrelated."""
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        return cls(int.from_bytes(digest[:7], "big"), device)

    @property
    def device(self) -> torch.device:
        return self._device

    @property
    def state(self) -> Tensor:
        """The whole state of the stream, as bytes on the CPU."""
        return self._generator.get_state()

    @state.setter
    def state(self, value: Tensor) -> None:
        self._generator.set_state(value.cpu())

    def uniform(self, shape: Sequence[int]) -> Float[Tensor, "..."]:
        """Uniform on [0, 1), in float64."""
        return torch.rand(tuple(shape), generator=self._generator, dtype=torch.float64).to(self.device)

    def normal(self, shape: Sequence[int]) -> Float[Tensor, "..."]:
        """Standard normal, in float64 (initial weights)."""
        return torch.randn(tuple(shape), generator=self._generator, dtype=torch.float64).to(self.device)

    def categorical(self, logits: Float[Tensor, "batch *rest categories"]) -> Int[Tensor, "batch *rest"]:
        if logits.shape[-1] == 2:
            first, second = logits.detach().unbind(-1)
            return (self.uniform(first.shape) < (second - first).double().sigmoid()).long()
        cumulative = logits.detach().double().softmax(-1).cumsum(-1)
        level = self.uniform(logits.shape[:-1]).unsqueeze(-1) * cumulative[..., -1:]
        return (cumulative <= level).sum(-1)

    def bernoulli(self, probability: Float[Tensor, "batch *rest"]) -> Bool[Tensor, "batch *rest"]:
        return self.uniform(probability.shape) < probability.detach().double()

    def integers(self, high: int, shape: Sequence[int]) -> Int[Tensor, "..."]:
        return torch.randint(high, tuple(shape), generator=self._generator).to(self.device)

    def permutation(self, batch: int, length: int) -> Int[Tensor, "batch length"]:
        return self.uniform((batch, length)).argsort(-1)

    def index(self, log_weights: Float[Tensor, " items"], batch: int) -> Int[Tensor, " batch"]:
        cumulative = log_weights.detach().double().softmax(-1).cumsum(-1)
        return torch.searchsorted(cumulative, self.uniform((batch,)) * cumulative[-1], right=True)
