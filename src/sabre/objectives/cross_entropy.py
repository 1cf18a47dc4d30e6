"""Cross-entropy: maximum likelihood on (weighted) samples of the target."""

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.objectives.base import ObjectiveValue, Origin, bounded

__all__ = ["cross_entropy"]


def cross_entropy(log_weight: Float[Tensor, " batch"], log_z: float, origin: Origin) -> ObjectiveValue:
    """L = KL(target || p), up to a constant: the mean of -log p under the target.

    grad L = -E_target[grad log p]. Samples of the target count alike, samples of the model with normalised importance
    weights: c_b = -softmax(log w)_b. The loss shown is the mean of log w - log Z under the same weights. A forbidden
    state (log w = -inf) is no sample of the target, whatever it is called: it has no weight.
    """
    lw, allowed = bounded(log_weight), (log_weight > -torch.inf).to(log_weight.dtype)
    weights = allowed * (lw.softmax(0) if origin == "model" else 1 / allowed.sum().clamp_min(1))
    return ObjectiveValue((weights * lw).sum() - log_z, -weights, lw.new_zeros(()))
