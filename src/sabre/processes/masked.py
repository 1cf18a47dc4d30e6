"""Masked diffusion: a trajectory is (tokens, order, schedule), and the partial states follow from it."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sabre.noise import NoiseLike
from sabre.processes.blocks import Blocks
from sabre.processes.order import Order
from sabre.processes.schedule import Schedule

__all__ = ["MaskedDiffusion", "Path", "masked_states", "per_step", "revealed", "starts"]


@dataclass(frozen=True)
class Path:
    """Where and when tokens are revealed: everything of a batch of trajectories but their values."""

    order: Int[Tensor, "batch tokens"]
    schedule: Int[Tensor, " steps"]

    @property
    def num_steps(self) -> int:
        return len(self.schedule)

    def part(self, rows: slice) -> "Path":
        """The same for some of the trajectories."""
        return Path(self.order[rows], self.schedule)


@dataclass(frozen=True)
class MaskedDiffusion:
    """The process X_0 = (mask, ..., mask) -> ... -> X_N = x that reveals k_n tokens in step n.

    Forward step:   p_F(X_{n+1} | X_n) = (1 / number of ways to choose the k sites) prod_{i revealed} f(X_n)_{i, x_i}
    Backward step:  p_B(X_n | X_{n+1}) = 1 / number of ways to choose them
    The probability of the choice is the same in both and is left out of both, so log w = log_density - log_pf.
    """

    blocks: Blocks
    order: Order
    schedule: Schedule

    @property
    def num_tokens(self) -> int:
        return self.blocks.num_tokens

    @property
    def mask_token(self) -> int:
        return self.blocks.vocabulary

    def draw_path(self, batch: int, noise: NoiseLike, device: torch.device | str = "cpu") -> Path:
        """An order for each row and one schedule for all of them."""
        schedule = self.schedule.draw(self.num_tokens, noise)
        return Path(self.order.draw(batch, noise, device), schedule)

    def with_schedule(self, schedule: Schedule) -> "MaskedDiffusion":
        """The same process with another number of tokens per step (train with one, sample with another)."""
        return replace(self, schedule=schedule)


def starts(schedule: Int[Tensor, " steps"]) -> Int[Tensor, " steps"]:
    """The number of tokens revealed before each step."""
    return schedule.cumsum(0) - schedule


def per_step(log_p: Float[Tensor, "batch tokens"], schedule: Int[Tensor, " steps"]) -> Float[Tensor, "batch steps"]:
    """Log-probabilities of tokens, in the order in which they are revealed, summed over each step."""
    if len(schedule) == log_p.shape[1]:
        return log_p
    step = torch.arange(len(schedule)).repeat_interleave(schedule).to(log_p.device)
    return log_p.new_zeros(len(log_p), len(schedule)).index_add(1, step, log_p)


def masked_states(
    tokens: Int[Tensor, "batch tokens"],
    order: Int[Tensor, "batch tokens"],
    start: Int[Tensor, "batch chosen"],
    mask_token: int,
) -> Int[Tensor, "batch chosen tokens"]:
    """The states in which the first `start` tokens of the order are revealed and the others carry the mask."""
    positions = torch.arange(order.shape[1], device=order.device).expand_as(order)
    rank = torch.empty_like(order).scatter_(1, order, positions)
    shown = rank.unsqueeze(1) < start.unsqueeze(2)
    return torch.where(shown, tokens.unsqueeze(1), mask_token)


def revealed(
    order: Int[Tensor, "batch tokens"], start: Int[Tensor, "batch chosen"], size: Int[Tensor, "batch chosen"]
) -> tuple[Int[Tensor, "batch chosen k"], Bool[Tensor, "batch chosen k"]]:
    """The tokens that a step reveals, padded to the largest step, and which of the entries are real."""
    offset = torch.arange(int(size.max()), device=order.device)
    present = offset < size.unsqueeze(-1)
    position = (start.unsqueeze(-1) + offset).clamp(max=order.shape[1] - 1)
    return order.gather(1, position.flatten(1)).reshape(position.shape), present
