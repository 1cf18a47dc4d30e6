"""Where the tokens of a trajectory enter and leave a causal network, for any schedule."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["NONE", "Slots"]

NONE = -1


@dataclass(frozen=True)
class Slots:
    """Step n has max(k_{n-1}, k_n) slots: they take in the k_{n-1} tokens of the step before and ask for k_n tokens.

    `known[s]` and `asked[s]` are positions in the order, or NONE. `is_key[s]` tells whether a slot may be attended
    to: it took in a token, or it belongs to the first step, where there is none. With one token per step, slot s
    takes in token s - 1 and asks for token s.
    """

    known: Int[Tensor, " slots"]
    asked: Int[Tensor, " slots"]
    step: Int[Tensor, " slots"]
    is_key: Bool[Tensor, " slots"]
    bounds: tuple[int, ...]

    @classmethod
    def of(cls, schedule: Int[Tensor, " steps"]) -> "Slots":
        """The slots of a schedule; those of step n are bounds[n]..bounds[n+1]-1."""
        known, asked, step, bounds = [], [], [], [0]
        start, before = 0, 0
        for n, size in enumerate(schedule.tolist()):
            count = max(before, size)
            known += [start - before + i if i < before else NONE for i in range(count)]
            asked += [start + i if i < size else NONE for i in range(count)]
            step += [n] * count
            bounds.append(bounds[-1] + count)
            start, before = start + size, size
        taken, steps = torch.tensor(known), torch.tensor(step)
        return cls(taken, torch.tensor(asked), steps, (taken != NONE) | (steps == 0), tuple(bounds))

    def to(self, device: torch.device) -> "Slots":
        known, asked, step, is_key = (part.to(device) for part in (self.known, self.asked, self.step, self.is_key))
        return Slots(known, asked, step, is_key, self.bounds)

    @property
    def is_plain(self) -> bool:
        """One slot per step: visibility is the ordinary causal mask."""
        return len(self.bounds) - 1 == len(self.known)

    def visible(self) -> Bool[Tensor, "slots slots"]:
        """Which slots (columns) each slot (row) may attend to: keys of its own and earlier steps."""
        return (self.step.unsqueeze(0) <= self.step.unsqueeze(1)) & self.is_key
