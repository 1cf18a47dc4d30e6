"""Magnetisation and two-point correlation on the square lattice, and their errors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.targets import AbstractTarget, Ising, Potts

__all__ = ["correlation", "correlation_error", "is_lattice", "magnetisation", "magnetisation_error"]


def is_lattice(target: AbstractTarget) -> bool:
    """True where the magnetisation and the correlation are defined: Ising and Potts models."""
    return isinstance(target, Ising | Potts)


def magnetisation(target: AbstractTarget, x: Int[Tensor, "n dim"]) -> Float[Tensor, "rows columns"]:
    """M(i) of each site. Ising: E[s_i], s = 2x - 1. Potts: (q max_c P(x_i = c) - 1) / (q - 1)."""
    lattice = x.unflatten(1, _shape(target))
    if isinstance(target, Ising):
        return 2 * lattice.double().mean(0) - 1
    q = target.num_categories
    share = torch.stack([(lattice == colour).double().mean(0) for colour in range(q)])
    return (q * share.amax(0) - 1) / (q - 1)


def magnetisation_error(target: AbstractTarget, x: Int[Tensor, "n dim"], true_x: Int[Tensor, "m dim"]) -> float:
    """1/2L sum_k |M_row(k) - M_row_true(k)| + |M_col(k) - M_col_true(k)|, M_row and M_col the means of M over a line.

    Where the phases are images of each other under a symmetry, the truth is exactly 0 and `true_x` is not looked at.
    """
    difference = magnetisation(target, x)
    if target.num_phases == 0:
        difference = difference - magnetisation(target, true_x)
    return float(difference.mean(1).abs().mean() + difference.mean(0).abs().mean()) / 2


def correlation(target: AbstractTarget, x: Int[Tensor, "n dim"]) -> Float[Tensor, "directions distances"]:
    """C_row(r) and C_col(r) for r = 0..L-1: the mean of C(i, j) over the L^2 pairs at distance r down or along.

    Ising: C(i, j) = E[s_i s_j] - E[s_i] E[s_j]. Potts: C(i, j) = P(x_i = x_j) - 1/q.
    """
    lattice = x.unflatten(1, _shape(target)).to(torch.int8)
    return torch.stack([_correlation_along(target, lattice, axis) for axis in (1, 2)])


def correlation_error(target: AbstractTarget, x: Int[Tensor, "n dim"], true_x: Int[Tensor, "m dim"]) -> float:
    """1/2L sum_r |C_row(r) - C_row_true(r)| + |C_col(r) - C_col_true(r)|."""
    return float((correlation(target, x) - correlation(target, true_x)).abs().mean())


def _correlation_along(
    target: AbstractTarget, lattice: Int[Tensor, "n rows columns"], axis: int
) -> Float[Tensor, " distances"]:
    size = lattice.shape[axis]
    mean = magnetisation(target, lattice.flatten(1))
    found = torch.zeros(size, dtype=torch.float64)
    for r in range(size // 2 + 1):  # distances r and L - r are the same pairs
        agree = (lattice == lattice.roll(-r, axis)).sum().double() / lattice.numel()
        if isinstance(target, Ising):
            value = 2 * agree - 1 - (mean * mean.roll(-r, axis - 1)).mean()
        else:
            value = agree - 1 / target.num_categories
        found[[r, -r]] = value
    return found


def _shape(target: AbstractTarget) -> tuple[int, int]:
    if not isinstance(target, Ising | Potts):
        raise InvalidArgumentError(
            f"magnetisation and correlation are those of Ising and Potts models, and this is {target.name!r}; "
            "leave these metrics out"
        )
    return target.size, target.size
