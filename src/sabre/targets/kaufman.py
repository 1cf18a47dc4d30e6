"""The exact partition function of the Ising model on a square torus without a field."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["CouplingDerivatives", "kaufman_log_z", "kaufman_moments"]

_FREE = 1e-9
"""Below this |K|, log Z is that of free spins to the last bit of float64, and its slope grows in proportion to K."""


class CouplingDerivatives(NamedTuple):
    """d log Z / dK = E B and d^2 log Z / dK^2 = Var B, where B = sum_{i~j} s_i s_j."""

    first: float
    second: float


def kaufman_log_z(size: int, coupling: float) -> float | None:
    """log sum_s exp(K sum_{i~j} s_i s_j) on the L x L torus, K = `coupling` (inverse temperature included).

    At side 2 every bond is double. A negative K equals |K| where the torus is bipartite (L even); where it is
    frustrated (L odd) Kaufman's formula does not apply and the answer is None.
    """
    if abs(coupling) < _FREE:
        return size**2 * math.log(2)
    if coupling < 0 and size % 2:
        return None
    return float(_log_z(size, torch.tensor(abs(coupling), dtype=torch.float64)))


def kaufman_moments(size: int, coupling: float) -> CouplingDerivatives | None:
    """Mean and variance of the bond sum, by differentiation of log Z; None where `kaufman_log_z` is.

    They carry an absolute rounding error of about 1e-15 L^2; the variance is never negative.
    """
    if abs(coupling) < _FREE:
        variance = 16.0 if size == 2 else 2.0 * size**2
        return CouplingDerivatives(variance * coupling, variance)
    if coupling < 0 and size % 2:
        return None
    with torch.inference_mode(False), torch.enable_grad():
        k = torch.tensor(abs(coupling), dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(_log_z(size, k), k, create_graph=True)
        (curvature,) = torch.autograd.grad(slope, k)
    return CouplingDerivatives(math.copysign(slope.item(), coupling), max(0.0, curvature.item()))


def _log_z(size: int, k: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """Kaufman's result for K > 0. With s = sinh 2K and, for k = 0 .. 2L-1,

        sinh(g_k / 2)^2 = (s - 1)^2 / (2 s) + sin(pi k / (2 L))^2,    g_0 with the sign of s - 1,
        P = prod 2 cosh(L g_k / 2),    T = prod tanh(L g_k / 2)    over odd or even k,
        Z = 1/2 (2 s)^(L^2 / 2) (P_odd (1 + T_odd) + P_even (1 + T_even)).

    Written in x = exp(-2K), s' = s x and u_k = sqrt(2 s) exp(g_k / 2) x, so that nothing overflows in the cold: then
    (2 s)^(L/2) 2 cosh(L g_k / 2) = (u_k / x)^L (1 + r_k), tanh(L g_k / 2) = (1 - r_k) / (1 + r_k) with
    r_k = (2 s' x / u_k^2)^L. It is even in g_0 but for the sign, so |g_0| stands for it, on either side of s = 1 with
    the derivatives of that side. T_even may cancel the 1, T_odd never does, and P_even is never far above P_odd.
    Only tanh(L g_0 / 2) may vanish, so the logarithms of the others exist.
    """
    x, s = torch.exp(-2 * k), -torch.expm1(-4 * k) / 2
    side = 1.0 if s >= x else -1.0
    sine = torch.sin(math.pi * torch.arange(1, 2 * size, dtype=torch.float64) / (2 * size))
    root = torch.cat([(side * (s - x)).reshape(1), ((s - x) ** 2 + 2 * s * x * sine**2).sqrt()])
    u = root + (root**2 + 2 * s * x).sqrt()
    r = (2 * s * x / u**2) ** size
    log_p, tanh = size * u.log() + r.log1p(), (1 - r) / (1 + r)
    odd, even = log_p[1::2].sum(), log_p[::2].sum()
    t_odd, t_even = tanh[1::2].log().sum().exp(), side * tanh[0] * tanh[2::2].log().sum().exp()
    total = (1 + t_odd) + (even - odd).exp() * (1 + t_even)
    return 2 * size**2 * k + odd + total.log() - math.log(2)
