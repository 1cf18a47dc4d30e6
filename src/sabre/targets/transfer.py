"""The exact partition function of a pairwise model on a narrow torus, by its row-to-row transfer matrix."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.targets.enumeration import unrank

__all__ = ["LARGEST_ROW", "transfer_log_z"]

LARGEST_ROW = 1024
"""The largest number of states of a row, which is the dimension of the transfer matrix, that is tried unasked."""


def transfer_log_z(size: int, coupling: float, field: Float[Tensor, " categories"]) -> float | None:
    """log sum_x exp(K sum_{i~j} 1[x_i = x_j] + sum_i field[x_i]) on the L x L torus, K = `coupling`.

    With r(a) the terms inside a row a, T[a, b] = exp(r(a) / 2 + K sum_i 1[a_i = b_i] + r(b) / 2) and Z = tr T^L.
    The power is taken by squaring, rescaled as it grows: nothing is subtracted, so nothing cancels. None where even
    the rescaled trace leaves the range of float64 (frustrated tori at very low temperature).
    """
    categories = len(field)
    row = unrank(torch.arange(categories**size), size, categories)
    onehot = torch.nn.functional.one_hot(row, categories).double().flatten(1)
    inside = coupling * (row == row.roll(1, 1)).double().sum(1) + field.double()[row].sum(1)
    log_t = coupling * (onehot @ onehot.T) + (inside[:, None] + inside) / 2
    scale = float(log_t.max())
    square, square_log = (log_t - scale).exp(), scale
    power, power_log = torch.eye(len(row), dtype=torch.float64), 0.0
    for bit in reversed(f"{size:b}"):
        if bit == "1":
            power, power_log = power @ square, power_log + square_log
        square, square_log = _rescaled(square @ square, 2 * square_log)
    trace = float(power.trace())
    return power_log + math.log(trace) if trace > 1e-200 else None


def _rescaled(matrix: Float[Tensor, "rows rows"], log_scale: float) -> tuple[Float[Tensor, "rows rows"], float]:
    largest = float(matrix.max())
    return matrix / largest, log_scale + math.log(largest)
