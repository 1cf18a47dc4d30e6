"""Enumeration of every random choice of a piece of shipped code, with its probability.

A `Tape` takes the place of a `Noise`. Rows of the batch are worlds: each row answers the draws with its own digits of
a mixed-radix number, so one call of the code under test on `states.repeat_interleave(worlds)` walks through all its
outcomes at once. The number of draws and their ranges must not depend on the state; probabilities may.

    outcomes = enumerate_outcomes(lambda x, noise: kernel_step(x, noise), states)
    outcomes.probability        # of each outcome of each state; sums to one per state
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError

__all__ = ["Outcomes", "Tape", "all_states", "enumerate_outcomes", "transition_matrix"]


class Tape:
    """Replays discrete choices: world w answers draw number j with its j-th digit in the mixed radix of the draws."""

    def __init__(self, world: Int[Tensor, " batch"]) -> None:
        self._remaining = world.clone()
        self.log_probability = torch.zeros(len(world), dtype=torch.float64)
        self.num_worlds = 1

    def _digits(self, radix: int, count: int) -> Int[Tensor, "batch count"]:
        columns = []
        for _ in range(count):
            columns.append(self._remaining % radix)
            self._remaining = self._remaining // radix
            self.num_worlds *= radix
        return torch.stack(columns, 1) if columns else self._remaining.new_zeros(len(self._remaining), 0)

    def _expect_batch(self, batch: int) -> None:
        assert batch == len(self._remaining), "the first axis of every draw must be the batch"

    def categorical(self, logits: Float[Tensor, "batch *rest categories"]) -> Int[Tensor, "batch *rest"]:
        self._expect_batch(len(logits))
        rest = logits.shape[1:-1]
        choice = self._digits(logits.shape[-1], math.prod(rest)).reshape(len(logits), *rest)
        log_p = logits.detach().double().log_softmax(-1).gather(-1, choice.unsqueeze(-1)).squeeze(-1)
        self.log_probability += log_p.flatten(1).sum(1) if rest else log_p
        return choice

    def bernoulli(self, probability: Float[Tensor, "batch *rest"]) -> Bool[Tensor, "batch *rest"]:
        p = probability.detach().double()
        return self.categorical(torch.stack([torch.log1p(-p), p.log()], -1)).bool()

    def integers(self, high: int, shape: Sequence[int]) -> Int[Tensor, "..."]:
        return self.categorical(torch.zeros(*shape, high))

    def permutation(self, batch: int, length: int) -> Int[Tensor, "batch length"]:
        table = torch.tensor(list(itertools.permutations(range(length)))).reshape(-1, length)
        return table[self.integers(len(table), (batch,))]

    def index(self, log_weights: Float[Tensor, " items"], batch: int) -> Int[Tensor, " batch"]:
        return self.categorical(log_weights.expand(batch, -1))


@dataclass(frozen=True)
class Outcomes:
    """Row r of `value` came from state `start[r]` with probability `probability[r]`."""

    value: Any
    start: Int[Tensor, " rows"]
    probability: Float[Tensor, " rows"]


def enumerate_outcomes(
    code: Callable[[Tensor, Tape], Any], states: Int[Tensor, "states dim"], max_worlds: int = 2**22
) -> Outcomes:
    """Run `code(rows, tape)` over every state and every random choice."""
    probe = Tape(torch.zeros(len(states), dtype=torch.long))
    code(states.clone(), probe)
    worlds = probe.num_worlds
    if worlds * len(states) > max_worlds:
        raise InvalidArgumentError(
            f"{len(states)} states x {worlds} outcomes are too many to enumerate; use less of both"
        )
    tape = Tape(torch.arange(worlds).repeat(len(states)))
    value = code(states.repeat_interleave(worlds, 0), tape)
    start = torch.arange(len(states)).repeat_interleave(worlds)
    return Outcomes(value, start, tape.log_probability.exp())


def all_states(dim: int, num_categories: int) -> Int[Tensor, "states dim"]:
    """Every x in {0..C-1}^d, the last site running fastest."""
    return torch.cartesian_prod(*[torch.arange(num_categories)] * dim).reshape(-1, dim)


def transition_matrix(
    step: Callable[[Tensor, Tape], Tensor], dim: int, num_categories: int
) -> Float[Tensor, "states states"]:
    """P[x, y]: the probability that `step` moves x to y, by enumeration."""
    states = all_states(dim, num_categories)
    outcomes = enumerate_outcomes(step, states)
    place = num_categories ** torch.arange(dim - 1, -1, -1)
    matrix = torch.zeros(len(states), len(states), dtype=torch.float64)
    matrix.index_put_((outcomes.start, outcomes.value @ place), outcomes.probability, accumulate=True)
    return matrix
