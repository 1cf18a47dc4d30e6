"""Estimates from log-weights, each with its standard error."""

import math
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

__all__ = ["Estimate", "effective_sample_size", "importance_log_z", "mean_estimate", "share"]


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    stderr: float

    def __str__(self) -> str:
        return f"{self.value:.5g} ± {self.stderr:.2g}"


def mean_estimate(values: Float[Tensor, " n"]) -> Estimate:
    """The mean of independent values: the ELBO and EUBO are means of log w."""
    n = len(values)
    error = float(values.double().std(unbiased=True)) / math.sqrt(n) if n > 1 else math.inf
    return Estimate(float(values.double().mean()), error)


def importance_log_z(log_weight: Float[Tensor, " n"]) -> Estimate:
    """log Z = log mean w; its error to first order, sqrt((mean w^2 / (mean w)^2 - 1) / n)."""
    n, lw = len(log_weight), log_weight.double()
    value = float(lw.logsumexp(0)) - math.log(n)
    if not math.isfinite(value):
        return Estimate(value, math.inf)
    second_moment = float((lw - value).exp().square().mean())
    return Estimate(value, math.sqrt(max(0.0, second_moment - 1) / n))


def effective_sample_size(log_weight: Float[Tensor, " n"]) -> Estimate:
    """ESS / n = (mean w)^2 / mean w^2, between 1/n and 1; its error by the delta method."""
    n, lw = len(log_weight), log_weight.double()
    log_mean = float(lw.logsumexp(0)) - math.log(n)
    if not math.isfinite(log_mean):
        return Estimate(0.0, math.inf)
    a = (lw - log_mean).exp()
    ess = 1 / float(a.square().mean())
    influence = 2 * ess * a - ess**2 * a.square() - ess
    return Estimate(ess, float(influence.square().mean().sqrt()) / math.sqrt(n))


def share(hits: int, n: int) -> Estimate:
    """A share of n independent samples; its error is that of a binomial count with one hit and one miss more.

    So none of n, or all of them, is not said to be certain.
    """
    p = (hits + 1) / (n + 2)
    return Estimate(hits / n, math.sqrt(p * (1 - p) / n))
