"""Reverse KL by the score function."""

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.objectives.base import ObjectiveValue, Origin, bounded

__all__ = ["reverse_kl"]


def reverse_kl(log_weight: Float[Tensor, " batch"], log_z: float, origin: Origin) -> ObjectiveValue:
    """L = KL(p || target), up to log Z: the mean of -log w under the model p.

    grad L = E_p[(b - log w) grad log p]. On the model's own samples, with the mean of the other trajectories as the
    baseline b: c_b = -(log w_b - mean log w) / (B - 1). Samples of the target are brought back to the model by the
    normalised weights v = softmax(-log w), and the baseline is the mean under v: c_b = -v_b (log w_b - sum v log w).
    A forbidden state (log w = -inf) is no sample of the target and gets no weight.
    """
    del log_z
    lw = bounded(log_weight)
    if origin == "model":
        loss, coefficients = -lw.mean(), -(lw - lw.mean()) / max(1, len(lw) - 1)
    else:
        v = torch.where(log_weight > -torch.inf, -lw, -torch.inf).softmax(0).nan_to_num(0)
        loss = -(v * lw).sum()
        coefficients = -v * (lw + loss)
    return ObjectiveValue(loss, coefficients, lw.new_zeros(()))
