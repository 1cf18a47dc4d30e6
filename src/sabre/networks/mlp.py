"""The paper's multi-layer perceptron on one-hot states."""

from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.layers import Linear
from sabre.networks.mlp_walk import MLPWalk, follow
from sabre.networks.products import elu
from sabre.noise import Noise
from sabre.processes import Path

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
        h = elu(self.first(one_hot))
        for layer in self.hidden:
            h = elu(layer(h))
        logits = self.out(h).unflatten(1, (self.num_tokens, self.vocabulary))
        return logits.gather(1, sites.unsqueeze(-1).expand(-1, -1, self.vocabulary))

    def walk(self, path: Path, record: bool) -> MLPWalk:
        """The states of a rollout."""
        return MLPWalk(self._layers(), self.vocabulary, path, record)

    def follow(self, tokens: Int[Tensor, "batch tokens"], path: Path) -> Float[Tensor, "batch tokens vocabulary"]:
        """Logits of every token, in the order of the path, in the state in which it is revealed."""
        return follow(self._layers(), self.vocabulary, tokens, path)

    def _layers(self) -> list[tuple[Tensor, Tensor]]:
        layers = (self.first, *self.hidden, self.out)
        return [(layer.weight, layer.bias) for layer in layers if isinstance(layer, Linear)]
