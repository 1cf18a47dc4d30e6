"""The exact partition function of a pairwise model on a narrow torus, by its row-to-row transfer matrix."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.targets.enumeration import unrank

__all__ = ["LARGEST_ROW", "transfer_log_z"]

LARGEST_ROW = 6561
"""The largest number of states of a row, which is the dimension of the transfer matrix, that is tried unasked."""

_CHUNK = 512
"""So many columns of the power of the transfer matrix are in memory at a time."""


def transfer_log_z(size: int, coupling: float, field: Float[Tensor, " categories"]) -> float | None:
    """log sum_x exp(K sum_{i~j} 1[x_i = x_j] + sum_i field[x_i]) on the L x L torus, K = `coupling`.

    With r(a) the terms inside a row a and W[c, c'] = exp(K 1[c = c']), the transfer matrix is the symmetric
    T = D (W x .. x W) D, D = diag exp(r / 2), which is applied site by site. As T is symmetric,
        Z = tr T^L = sum_a <T^l e_a, T^(L - l) e_a>,    l = floor(L / 2),
    and rows a that are images of each other have the same term. D and W are scaled to a largest entry of one: nothing
    overflows, and nothing is subtracted, so nothing cancels. None where the scaled trace comes near the smallest
    float64 (frustrated tori at very low temperature).
    """
    categories = len(field)
    row = unrank(torch.arange(categories**size), size, categories)
    inside = coupling * (row == row.roll(1, 1)).double().sum(1) + field.double()[row].sum(1)
    diagonal = ((inside - inside.max()) / 2).exp()
    bond = (coupling * torch.eye(categories, dtype=torch.float64) - max(coupling, 0.0)).exp()
    trace = 0.0
    representative, images = _orbits(row, categories, is_uniform=bool((field == field[0]).all()))
    for chosen, count in zip(representative.split(_CHUNK), images.split(_CHUNK), strict=True):
        power = torch.nn.functional.one_hot(chosen, len(row)).double()
        for _ in range(size // 2):
            power = _apply(power, diagonal, bond)
        other = _apply(power, diagonal, bond) if size % 2 else power
        trace += float(count.double() @ (power * other).sum(1))
    return size * (float(inside.max()) + size * max(coupling, 0.0)) + math.log(trace) if trace > 1e-200 else None


def _apply(
    vectors: Float[Tensor, "batch rows"], diagonal: Float[Tensor, " rows"], bond: Float[Tensor, "categories categories"]
) -> Float[Tensor, "batch rows"]:
    """T v for each v. A turn takes the last site through W and puts it in front; after L of them all are in place."""
    categories = len(bond)
    vectors = vectors * diagonal
    for _ in range(round(math.log(len(diagonal), categories))):
        vectors = (vectors.reshape(len(vectors), -1, categories) @ bond).transpose(1, 2).reshape(vectors.shape)
    return vectors * diagonal


def _orbits(
    row: Int[Tensor, "rows size"], categories: int, *, is_uniform: bool
) -> tuple[Int[Tensor, " orbits"], Int[Tensor, " orbits"]]:
    """One row, by rank, of each orbit of the rotations and, in a uniform field, the cycles of colours; their sizes."""
    size = row.shape[1]
    place = categories ** torch.arange(size - 1, -1, -1)
    lowest = row @ place
    for shift in range(categories if is_uniform else 1):
        recoloured = (row + shift) % categories
        for turn in range(size):
            lowest = torch.minimum(lowest, recoloured.roll(turn, 1) @ place)
    representative, images = lowest.unique(return_counts=True)
    return representative, images
