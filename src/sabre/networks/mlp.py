"""The paper's multi-layer perceptron on one-hot states."""

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
        self.vocabulary = vocabulary
        sizes = [num_tokens * (vocabulary + 1)] + [width] * depth
        self.hidden = nn.ModuleList(Linear(a, b, noise) for a, b in zip(sizes, sizes[1:], strict=False))
        self.out = Linear(width, num_tokens * vocabulary, noise)

    def forward(
        self, state: Int[Tensor, "rows tokens"], sites: Int[Tensor, "rows k"]
    ) -> Float[Tensor, "rows k vocabulary"]:
        h = nn.functional.one_hot(state, self.vocabulary + 1).flatten(1).to(self.out.weight.dtype)
        for layer in self.hidden:
            h = nn.functional.elu(layer(h))
        logits = self.out(h).reshape(len(h), -1, self.vocabulary)
        return logits.gather(1, sites.unsqueeze(-1).expand(-1, -1, self.vocabulary))
