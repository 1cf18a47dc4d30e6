"""The paper's multi-layer perceptron on one-hot states."""

from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.layers import Linear
from sabre.noise import Noise

__all__ = ["MLP"]


class MLP(nn.Module):
    """One-hot input including the mask, `depth` hidden ELU layers, logits of every token; no time input.

    h_0 = one_hot(state);  h_l = ELU(W_l h_{l-1} + b_l);  logits = W h_depth + b
    """

    def __init__(self, num_tokens: int, vocabulary: int, noise: Noise, *, width: int = 256, depth: int = 2) -> None:
        super().__init__()
        self.num_tokens, self.vocabulary = num_tokens, vocabulary
        self.first = Linear(num_tokens * (vocabulary + 1), width, noise)
        self.hidden = nn.ModuleList(Linear(a, b, noise) for a, b in pairwise([width] * depth))
        self.out = Linear(width, num_tokens * vocabulary, noise)

    def forward(
        self, state: Int[Tensor, "rows tokens"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        values = torch.arange(self.vocabulary + 1, device=state.device)
        one_hot = (state.unsqueeze(2) == values).flatten(1).to(self.out.weight.dtype)
        return self.finish(self.first(one_hot), sites)

    def finish(
        self, before: Float[Tensor, "rows width"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        """Logits from what the first layer gives before its nonlinearity."""
        h = nn.functional.elu(before)
        for layer in self.hidden:
            h = nn.functional.elu(layer(h))
        logits = self.out(h).unflatten(1, (self.num_tokens, self.vocabulary))
        return logits.gather(1, sites.unsqueeze(-1).expand(-1, -1, self.vocabulary))

    def stepper(self, batch: int) -> "_Stepper":
        """Revealing a token changes one column of the one-hot input: the first layer follows by an addition."""
        return _Stepper(self, batch)


class _Stepper:
    """before = W_1 one_hot(state) + b_1, kept up to date by the columns of W_1 that change."""

    def __init__(self, mlp: MLP, batch: int) -> None:
        self._mlp = mlp
        columns = mlp.first.weight.detach().unflatten(1, (mlp.num_tokens, mlp.vocabulary + 1)).permute(1, 2, 0)
        masked = columns[:, -1]
        self._change = (columns[:, :-1] - masked.unsqueeze(1)).flatten(0, 1)
        self._before = (masked.sum(0) + mlp.first.bias.detach()).repeat(batch, 1)

    def logits(self, sites: Int[Tensor, "rows k"]) -> Float[Tensor, "rows k vocabulary"]:
        return self._mlp.finish(self._before, sites)

    def reveal(self, sites: Int[Tensor, "rows k"], values: Int[Tensor, "rows k"]) -> None:
        which = sites * self._mlp.vocabulary + values
        for column in which.unbind(1):
            self._before += self._change.index_select(0, column)
