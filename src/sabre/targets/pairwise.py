"""Models whose log density is a sum over pairs of sites and single sites."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError

__all__ = ["Pairwise"]


@dataclass(frozen=True)
class Pairwise:
    """log p(x) = sum_e coupling_e 1[x_i = x_j] + sum_i field[i, x_i] + constant, inverse temperature included.

    An edge may occur twice (a torus of side two); its couplings add up.
    """

    edges: Int[Tensor, "edges 2"]
    coupling: Float[Tensor, " edges"]
    field: Float[Tensor, "dim categories"]
    constant: float = 0.0

    def __post_init__(self) -> None:
        if not bool(self.coupling.isfinite().all()):
            raise InvalidArgumentError("Pairwise: a coupling is not finite; only a field may be -inf (forbidden)")
        if bool((self.field.isnan() | (self.field == torch.inf)).any()):
            raise InvalidArgumentError(
                "Pairwise: a field is NaN or +inf; use finite ones, or -inf for forbidden values"
            )

    @property
    def dim(self) -> int:
        return self.field.shape[0]

    @property
    def num_categories(self) -> int:
        return self.field.shape[1]

    def log_density(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        edges, coupling, field = (part.to(x.device) for part in (self.edges, self.coupling, self.field))
        agree = (x[:, edges[:, 0]] == x[:, edges[:, 1]]).to(coupling.dtype)
        single = field.expand(len(x), -1, -1).gather(2, x.unsqueeze(-1)).squeeze(-1).sum(1)
        return agree @ coupling + single + self.constant

    @cached_property
    def neighbours(self) -> tuple[Int[Tensor, "dim degree"], Float[Tensor, "dim degree"], Int[Tensor, "dim degree"]]:
        """(neighbour, coupling, edge) of each site, padded with (itself, 0, 0) to the largest degree."""
        lists: list[list[tuple[int, float, int]]] = [[] for _ in range(self.dim)]
        for e, ((i, j), c) in enumerate(zip(self.edges.tolist(), self.coupling.tolist(), strict=True)):
            lists[i].append((j, c, e))
            lists[j].append((i, c, e))
        degree = max((len(row) for row in lists), default=0)
        padded = [row + [(i, 0.0, 0)] * (degree - len(row)) for i, row in enumerate(lists)]
        site = torch.tensor([[n for n, _, _ in row] for row in padded], dtype=torch.long).reshape(self.dim, degree)
        weight = torch.tensor([[c for _, c, _ in row] for row in padded], dtype=self.coupling.dtype)
        edge = torch.tensor([[e for _, _, e in row] for row in padded], dtype=torch.long)
        return site, weight.reshape(self.dim, degree), edge.reshape(self.dim, degree)

    def local_field(
        self, x: Int[Tensor, "batch dim"], site: Int[Tensor, "batch sites"]
    ) -> Float[Tensor, "batch sites categories"]:
        """field[i, c] + the couplings to the neighbours j with x_j = c; a masked neighbour (value C) adds nothing."""
        neighbour, weight, _ = (table.to(x.device) for table in self.neighbours)
        around = x.gather(1, neighbour[site].flatten(1)).reshape(*site.shape, -1)
        onehot = torch.nn.functional.one_hot(around, self.num_categories + 1)[..., : self.num_categories]
        return self.field.to(x.device)[site] + (onehot * weight[site].unsqueeze(-1)).sum(-2)
