"""The residual of the continuity equation of annealed jumps."""

from jaxtyping import Float
from torch import Tensor

from sabre.objectives.base import ObjectiveValue, Origin, bounded

__all__ = ["continuity"]


def continuity(log_weight: Float[Tensor, " batch"], log_z: float, origin: Origin) -> ObjectiveValue:
    """L = mean_b r_b^2 at states and times of any origin, r = log_density(x) - f(t) - K_t(x) in the place of log w.

    c_b = -2 r_b / B: trajectory balance for a step of no length, with f(t) as its own, learnt, normaliser.
    """
    del log_z, origin
    residual = bounded(log_weight)
    return ObjectiveValue(
        loss=residual.square().mean(),
        coefficients=-2 * residual / len(residual),
        log_z_grad=residual.new_zeros(()),
    )
