"""Whether parallel chains agree with each other."""

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.errors import InvalidArgumentError

__all__ = ["split_r_hat"]


def split_r_hat(series: Float[Tensor, "steps chains"]) -> float:
    """sqrt((W (n - 1) / n + B / n) / W) over the halves of all chains, n steps each (Gelman and others).

    B / n is the variance of the means of the halves, W the mean of their variances. 1 where all halves follow one law,
    above 1 where chains sit in different places or still move. Chains that never change agree (1) or never will (inf).
    """
    n = len(series) // 2
    if n < 2:
        raise InvalidArgumentError(f"split_r_hat: {len(series)} steps are too few; pass at least 4")
    halves = torch.cat([series[:n], series[-n:]], 1).double()
    within = float(halves.var(0, unbiased=True).mean())
    between = float(halves.mean(0).var(unbiased=True))
    if within == 0:
        return 1.0 if between == 0 else torch.inf
    return float(((within * (n - 1) / n + between) / within) ** 0.5)
