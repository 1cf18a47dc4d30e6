"""Connected components of many subgraphs of one graph."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["connected_components"]


def connected_components(
    open_edge: Bool[Tensor, "chains edges"],
    neighbour: Int[Tensor, "dim degree"],
    edge: Int[Tensor, "dim degree"],
) -> Int[Tensor, "chains dim"]:
    """The smallest site of the component of each site, when only the open edges of a chain connect.

    Row i of the tables lists the neighbours of site i and the edges that lead there; a padding entry names i itself.

    Until nothing changes:
    1. label_i <- the smallest label of i and of the neighbours behind an open edge;
    2. label_i <- label_{label_i}, since a label is always a site of the same component.
    """
    chains, (dim, degree) = len(open_edge), neighbour.shape
    # Chains run along the last axis, so that looking up a neighbour copies whole rows, and labels are as narrow as
    # they can be: both together are forty times faster than gathering int64 labels chain by chain.
    dtype = torch.int16 if 2 * dim < 2**15 else torch.int32
    closed = ~open_edge.t()
    barrier = [closed[edge[:, k]].to(dtype) * dim for k in range(degree)]
    label = torch.arange(dim, dtype=dtype, device=open_edge.device).unsqueeze(1).expand(dim, chains)
    while True:
        smallest = label
        for k in range(degree):
            smallest = torch.minimum(smallest, label[neighbour[:, k]] + barrier[k])
        if torch.equal(smallest, label):
            return label.t().long()
        label = smallest.gather(0, smallest.long())
