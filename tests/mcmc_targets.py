"""Small peaked targets without symmetries, for the tests of kernels and runs."""

import torch

from sabre.tape import all_states
from sabre.targets import AbstractTarget, Pairwise

INF = float("inf")
F64 = torch.float64


class Table(AbstractTarget):
    """A log density per state, by rank; counts the rows it is asked for."""

    def __init__(self, dim, num_categories, log_p):
        self.name, self.dim, self.num_categories, self.log_p, self.rows = "table", dim, num_categories, log_p, 0

    def log_density(self, x):
        self.rows += len(x)
        return self.log_p[x @ self.num_categories ** torch.arange(self.dim - 1, -1, -1)]


class Coupled(AbstractTarget):
    """A pairwise model; `hidden` keeps its couplings from the kernels."""

    def __init__(self, edges, coupling, field, hidden=False):
        self.name, (self.dim, self.num_categories) = "coupled", field.shape
        self.model = Pairwise(torch.tensor(edges, dtype=torch.long).reshape(-1, 2), coupling, field)
        self.hidden, self.rows = hidden, 0

    @property
    def pairwise(self):
        return None if self.hidden else self.model

    def log_density(self, x):
        self.rows += len(x)
        return self.model.log_density(x)


EDGES = [(0, 1), (1, 2), (2, 3), (1, 0), (0, 2)]
COUPLING = torch.tensor([0.4, 1.1, 0.7, 0.3, 0.9], dtype=F64)


def random(seed, *shape, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def peaked_table():
    return Table(3, 3, random(5, 27, scale=2.5))


def fielded(num_categories, scale=1.0, coupling=1.0, hidden=False):
    return Coupled(EDGES, COUPLING * coupling, random(3, 4, num_categories, scale=scale), hidden)


def law(target):
    return target.log_density(all_states(target.dim, target.num_categories)).softmax(0)


def lattice(side):
    index = torch.arange(side * side).reshape(side, side)
    pairs = [torch.stack([index.flatten(), index.roll(-1, axis).flatten()], 1) for axis in (0, 1)]
    return torch.cat(pairs)


def storages(*tensors):
    return {t.untyped_storage().data_ptr() for t in tensors}
