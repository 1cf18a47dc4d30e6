"""Densities on {0..C-1}^d, each with what is known about it."""

from sabre.targets.base import AbstractTarget, Layout, Symmetry
from sabre.targets.checked import CheckedTarget
from sabre.targets.enumeration import ExactEnergy
from sabre.targets.gmm40 import GMM40
from sabre.targets.gray import GrayGrid, gray_to_integer, integer_to_gray
from sabre.targets.imported import import_target
from sabre.targets.ising import Ising
from sabre.targets.lattice import torus_edges
from sabre.targets.manywell import ManyWell
from sabre.targets.pairwise import Pairwise
from sabre.targets.potts import Potts
from sabre.targets.registry import TARGETS, make_target
from sabre.targets.user import Target

__all__ = [
    "GMM40",
    "TARGETS",
    "AbstractTarget",
    "CheckedTarget",
    "ExactEnergy",
    "GrayGrid",
    "Ising",
    "Layout",
    "ManyWell",
    "Pairwise",
    "Potts",
    "Symmetry",
    "Target",
    "gray_to_integer",
    "import_target",
    "integer_to_gray",
    "make_target",
    "torus_edges",
]
