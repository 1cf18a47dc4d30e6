"""Drawing categories from conditional distributions."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.noise import NoiseLike

__all__ = ["heat_bath"]


def heat_bath(
    logits: Float[Tensor, "chains *rest categories"], current: Int[Tensor, "chains *rest"], noise: NoiseLike
) -> Int[Tensor, "chains *rest"]:
    """Draw c with probability softmax(logits)_c; where every category is forbidden keep the current one."""
    stuck = (logits == -torch.inf).all(-1, keepdim=True)
    others = torch.arange(logits.shape[-1], device=logits.device) != current.unsqueeze(-1)
    keeping = torch.zeros_like(logits).masked_fill(others, -torch.inf)
    return noise.categorical(torch.where(stuck, keeping, logits))
