"""The log-variance divergence."""

from jaxtyping import Float
from torch import Tensor

from sabre.objectives.base import ObjectiveValue, Origin, bounded

__all__ = ["log_variance"]


def log_variance(log_weight: Float[Tensor, " batch"], log_z: float, origin: Origin) -> ObjectiveValue:
    """L = unbiased variance of log w over the batch, for trajectories of any origin.

    c_b = -2 (log w_b - mean log w) / (B - 1)
    """
    del log_z, origin
    lw = bounded(log_weight)
    centred = lw - lw.mean()
    normaliser = max(1, len(lw) - 1)
    return ObjectiveValue(
        loss=centred.square().sum() / normaliser,
        coefficients=-2 * centred / normaliser,
        log_z_grad=lw.new_zeros(()),
    )
