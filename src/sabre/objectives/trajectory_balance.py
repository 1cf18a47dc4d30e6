"""Trajectory balance with a learnt log Z."""

from jaxtyping import Float
from torch import Tensor

from sabre.objectives.base import ObjectiveValue, Origin, bounded

__all__ = ["trajectory_balance"]


def trajectory_balance(log_weight: Float[Tensor, " batch"], log_z: float, origin: Origin) -> ObjectiveValue:
    """L = mean_b (log w_b - log Z)^2, for trajectories of any origin.

    c_b = -2 (log w_b - log Z) / B,   dL/d log Z = -2 mean_b (log w_b - log Z)
    """
    del origin
    residual = bounded(log_weight) - log_z
    return ObjectiveValue(
        loss=residual.square().mean(),
        coefficients=-2 * residual / len(residual),
        log_z_grad=-2 * residual.mean(),
    )
