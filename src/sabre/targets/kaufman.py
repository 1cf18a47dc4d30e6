"""The exact partition function of the Ising model on a square torus without a field."""

import math

import numpy as np

__all__ = ["kaufman_log_z"]

_FREE = 1e-100
"""Below this |beta J|, log Z is that of free spins to the last bit of float64."""

_FROZEN = 100.0
"""Above this |beta J|, log Z is that of the two ground states to the last bit of float64."""


def kaufman_log_z(size: int, coupling: float) -> float | None:
    """log sum_s exp(K sum_{i~j} s_i s_j) on the L x L torus, K = `coupling` (inverse temperature included).

    With s = sinh 2K and, for k = 0 .. 2L-1,
        sinh(g_k / 2)^2 = (s - 1)^2 / (2 s) + sin(pi k / (2 L))^2,    g_0 with the sign of s - 1,
    Kaufman's result is
        Z = 1/2 (2 s)^(L^2 / 2) (prod_odd 2 cosh(L g_k / 2) + prod_odd 2 sinh(L g_k / 2)
                                 + prod_even 2 cosh(L g_k / 2) + prod_even 2 sinh(L g_k / 2)).
    At side 2 every bond is double. A negative K equals |K| where the torus is bipartite (L even); where it is
    frustrated (L odd) the formula does not apply and the answer is None.
    """
    if abs(coupling) < _FREE:
        return size**2 * math.log(2)
    if coupling < 0 and size % 2:
        return None
    k = abs(coupling)
    if k > _FROZEN:
        return 2 * size**2 * k + math.log(2)
    s = math.sinh(2 * k)
    angle = np.pi * np.arange(2 * size) / (2 * size)
    gamma = 2 * np.arcsinh(np.sqrt((s - 1) / s * (s - 1) / 2 + np.sin(angle) ** 2))
    half = size * gamma / 2
    log_cosh = half + np.log1p(np.exp(-2 * half))
    with np.errstate(divide="ignore"):
        log_sinh = half + np.log(-np.expm1(-2 * half))
    terms = [log_cosh[1::2].sum(), log_sinh[1::2].sum(), log_cosh[::2].sum(), log_sinh[::2].sum()]
    prefactor = size**2 / 2 * (2 * k + math.log(-math.expm1(-4 * k))) - math.log(2)
    # The even terms may cancel, the odd ones never do, and their cosh is within a factor of the largest term.
    largest = max(terms)
    signs = (1, 1, 1, math.copysign(1, s - 1))
    total = sum(sign * math.exp(term - largest) for sign, term in zip(signs, terms, strict=True))
    return float(prefactor + largest + math.log(total))
