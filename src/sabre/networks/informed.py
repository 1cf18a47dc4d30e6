"""Informed logits: what the target itself says about a token, given its revealed neighbours."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.processes import Blocks
from sabre.targets import Pairwise

__all__ = ["LocalFieldLogits"]

_FORBIDDEN = -1e4
"""Takes the place of a field of -inf: a factor of exp(-10000), which multiplies without becoming NaN."""


class LocalFieldLogits(nn.Module):
    """The terms of a pairwise log density that involve a token, its unrevealed neighbours left out.

        L_t(v) = sum_{edges inside t} J 1[v_i = v_j] + sum_{i in t} (field[i, v_i] + sum_{revealed j} J_ij 1[x_j = v_i])

    The last token of a trajectory has all its neighbours revealed, and there L is its exact conditional.
    """

    inside: Tensor

    def __init__(self, pairwise: Pairwise, blocks: Blocks) -> None:
        super().__init__()
        self.num_categories = blocks.num_categories
        neighbour, weight, _ = pairwise.neighbours
        values, groups = blocks.values, blocks.groups
        self._constants = ("groups", "neighbour", "weight", "owner", "field", "values", "choice", "inside")
        constants = {
            "groups": groups,
            "neighbour": neighbour,
            "weight": weight.float(),
            "owner": blocks.token_of_site,
            "field": pairwise.field.float().clamp_min(_FORBIDDEN),
            "values": torch.cat([values, values.new_zeros(1, blocks.size)]),
            "choice": nn.functional.one_hot(values, blocks.num_categories).flatten(1).t().float(),
            "inside": _inside(pairwise, blocks).float(),
        }
        for name, constant in constants.items():
            self.register_buffer(name, constant, persistent=False)

    def forward(
        self,
        tokens: Int[Tensor, "batch tokens"],
        rank: Int[Tensor, "batch tokens"],
        asked: Int[Tensor, "batch slots"],
        start: Int[Tensor, " slots"],
    ) -> Float[Tensor, "batch slots vocabulary"]:
        """Logits of the tokens `asked`, each given the tokens whose rank in the order is below its `start`."""
        batch = len(tokens)
        x = tokens.new_empty(batch, self.groups.numel())  # type: ignore[operator]
        x[:, self.groups] = self.values[tokens]  # type: ignore[index]
        sites = self.groups[asked]  # type: ignore[index]
        neighbour = self.neighbour[sites]  # type: ignore[index]
        around = x.gather(1, neighbour.flatten(1)).reshape(neighbour.shape)
        shown = rank.gather(1, self.owner[neighbour].flatten(1)).reshape(neighbour.shape)  # type: ignore[index]
        weight = torch.where(shown < start[:, None, None], self.weight[sites], 0)  # type: ignore[index]
        pull = torch.stack([torch.where(around == c, weight, 0).sum(-1) for c in range(self.num_categories)], -1)
        return (self.field[sites] + pull).flatten(2) @ self.choice + self.inside[asked]  # type: ignore[index,operator]


def _inside(pairwise: Pairwise, blocks: Blocks) -> Float[Tensor, "tokens vocabulary"]:
    """Energy of the edges whose two ends are in the same token, for every value of the token."""
    owner, place = blocks.token_of_site, torch.empty(pairwise.dim, dtype=torch.long)
    place[blocks.groups] = torch.arange(blocks.size)
    table = torch.zeros(blocks.num_tokens, blocks.vocabulary, dtype=torch.float64)
    for (i, j), coupling in zip(pairwise.edges.tolist(), pairwise.coupling.tolist(), strict=True):
        if owner[i] == owner[j]:
            table[owner[i]] += coupling * (blocks.values[:, place[i]] == blocks.values[:, place[j]])
    return table
