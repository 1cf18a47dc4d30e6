"""What an objective is: log-weights in, coefficients of the trajectories' log-likelihood gradients out."""

from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Objective", "ObjectiveValue", "Origin", "bounded"]

Origin = Literal["model", "target"]
"""Which law a batch follows: the model's own (on-policy, plain replay) or, approximately, the target's."""

_FORBIDDEN_GAP = 100.0


class ObjectiveValue(NamedTuple):
    """Loss (for show), c_b of grad L = sum_b c_b grad log p(tau_b), and dL / d log Z."""

    loss: Float[Tensor, ""]
    coefficients: Float[Tensor, " batch"]
    log_z_grad: Float[Tensor, ""]


@runtime_checkable
class Objective(Protocol):
    """One member: `name(log_weight, log_z, origin)`, a pure function of detached log-weights."""

    def __call__(self, log_weight: Float[Tensor, " batch"], log_z: float, origin: Origin) -> ObjectiveValue: ...


def bounded(log_weight: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """Log-weights in which a forbidden state (-inf) counts as 100 nats below the best of the batch."""
    forbidden = torch.isneginf(log_weight)
    best = torch.where(forbidden, -torch.inf, log_weight).max()
    floor = torch.where(torch.isneginf(best), 0.0, best) - _FORBIDDEN_GAP
    return torch.where(forbidden, floor, log_weight)
