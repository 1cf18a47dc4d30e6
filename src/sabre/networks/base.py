"""The two calls that every network answers, whatever it is inside."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.noise import NoiseLike
from sabre.processes import Path

__all__ = ["Chunk", "Network", "Rollout", "Trainable", "value_log_probs"]


class Rollout(NamedTuple):
    """Tokens drawn from the model and the log-probability of each step that drew them.

    Where gradients are enabled and the network has kept what a backward pass needs, `log_pf` has a graph.
    """

    tokens: Int[Tensor, "batch tokens"]
    log_pf: Float[Tensor, "batch steps"]


class Chunk(NamedTuple):
    """A part of a batch of trajectories that fits in memory: these rows, these columns of the chosen steps."""

    rows: slice
    steps: slice


@runtime_checkable
class Trainable(Protocol):
    """What learning needs: log-probabilities of steps with a graph, in parts that fit in memory."""

    def step_log_probs(
        self, tokens: Int[Tensor, "batch tokens"], path: Any, steps: Int[Tensor, "batch chosen"] | None = None
    ) -> Float[Tensor, "batch chosen"]:
        """log p of the chosen steps (default: all of them) of trajectories that end in `tokens`.

        `path` is what else there is to know of a trajectory of the process: a `Path` of masked diffusion.
        """

    def chunks(self, batch: int, num_steps: int) -> Iterator[Chunk]:
        """Parts of the work that may hold their activations in memory at the same time."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """What is trained."""


@runtime_checkable
class Network(Trainable, Protocol):
    """A sampler of trajectories: p(tokens | path) = prod_n p(tokens revealed in step n | those revealed before)."""

    def rollout(self, path: Path, noise: NoiseLike) -> Rollout:
        """Draw tokens along the path."""


def value_log_probs(
    logits: Float[Tensor, "rows k vocabulary"], values: Int[Tensor, "rows k"]
) -> Float[Tensor, "rows k"]:
    """log softmax(logits) at the values."""
    return logits.log_softmax(2).gather(2, values.unsqueeze(2)).squeeze(2)
