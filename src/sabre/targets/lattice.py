"""The square torus: its edges, its layout and its symmetries. Site (row, column) has index row * size + column."""

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.targets.arguments import require_int
from sabre.targets.base import Layout, Symmetry
from sabre.targets.symmetry import permute_sites

__all__ = ["torus_edges", "torus_layout", "torus_symmetries"]


def _grid(size: int) -> Int[Tensor, "size size"]:
    size = require_int("torus", "size", size, low=2)
    return torch.arange(size * size).reshape(size, size)


def torus_edges(size: int) -> Int[Tensor, "edges 2"]:
    """Each site with its right and its lower neighbour; at size 2 every bond occurs twice."""
    site = _grid(size)
    right, below = site.roll(-1, 1), site.roll(-1, 0)
    return torch.cat([torch.stack([site, other], -1).reshape(-1, 2) for other in (right, below)])


def torus_layout(size: int) -> Layout:
    site = _grid(size).flatten()
    return Layout("torus", (size, size), torch.stack([site // size, site % size], 1))


def torus_symmetries(size: int) -> tuple[Symmetry, ...]:
    """Generators of the symmetry group of the torus (for size 4 the group is larger still)."""
    grid = _grid(size)
    return (
        permute_sites("translation by one row", grid.roll(1, 0).flatten()),
        permute_sites("translation by one column", grid.roll(1, 1).flatten()),
        permute_sites("rotation by 90 degrees", grid.rot90().flatten()),
        permute_sites("transposition", grid.T.flatten()),
    )
