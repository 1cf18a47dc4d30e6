"""Cross-entropy: maximum likelihood on (weighted) samples of the target."""

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.objectives.base import ObjectiveValue, Origin, bounded

__all__ = ["cross_entropy"]


def cross_entropy(log_weight: Float[Tensor, " batch"], log_z: float, origin: Origin) -> ObjectiveValue:
    """L = KL(target || p), up to a constant: the mean of -log p under the target.

    grad L = -E_target[grad log p]. Samples of the target count alike, samples of the model with normalised importance
    weights: c_b = -softmax(log w)_b. The loss shown is the mean of log w - log Z under the same weights.
    """
    lw = bounded(log_weight)
    weights = lw.softmax(0) if origin == "model" else torch.full_like(lw, 1 / len(lw))
    return ObjectiveValue((weights * lw).sum() - log_z, -weights, lw.new_zeros(()))
