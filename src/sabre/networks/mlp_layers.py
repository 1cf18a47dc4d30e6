"""The layers of an MLP, reduced to the differences that matter along a trajectory, and their gradients."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.networks.products import LOG2_E

__all__ = ["Layers", "expand_gradients", "reduce_layers"]

Layers = Sequence[tuple[Tensor, Tensor]]
"""(weight, bias) of every layer; of reduced ones, the first entry is (change, base)."""


def reduce_layers(layers: Layers, vocabulary: int) -> list[tuple[Tensor, Tensor]]:
    """(change, base), then (weight, bias) of the other layers, the last of which answers for values 1, 2, ... only.

    W_1 one_hot(state) + b_1 = base + sum over the revealed tokens t of change[(t, value)], with base what the masked
    state gives and change[(t, v)] = W_1[:, (t, v)] - W_1[:, (t, mask)]. A softmax does not change with a constant, so
    the logit of value 0 is subtracted from the others of its token and need not be computed. Hidden units are in
    multiples of ln 2, as `binary_elu` wants them: all that is added up in them grows by log2(e), and the last weights
    shrink by it.
    """
    (weight, bias), *hidden, (last_weight, last_bias) = [(w.detach(), b.detach()) for w, b in layers]
    columns = weight.t().contiguous().unflatten(0, (-1, vocabulary + 1))
    masked = columns[:, -1]
    first = LOG2_E * (columns[:, :-1] - masked.unsqueeze(1)).flatten(0, 1), LOG2_E * (masked.sum(0) + bias)
    middle = [(w, LOG2_E * b) for w, b in hidden]
    return [first, *middle, (_gaps(last_weight, vocabulary) / LOG2_E, _gaps(last_bias, vocabulary))]


def expand_gradients(reduced: Sequence[Tensor], vocabulary: int) -> list[Tensor]:
    """Gradients of all (weight, bias), one after the other, from those of the reduced ones."""
    change, base, *hidden, last_weight, last_bias = reduced
    change, base = LOG2_E * change.unflatten(0, (-1, vocabulary)), LOG2_E * base
    masked = (base - change.sum(1)).unsqueeze(1)
    first = torch.cat([change, masked], 1).flatten(0, 1).t()
    middle = [part * LOG2_E if part.ndim == 1 else part for part in hidden]
    last = _gaps_backward(last_weight, vocabulary) / LOG2_E, _gaps_backward(last_bias, vocabulary)
    return [first, base, *middle, *last]


def _gaps(rows: Float[Tensor, "outputs *width"], vocabulary: int) -> Float[Tensor, "gaps *width"]:
    """Rows of the values 1, 2, ... of each token, less the row of its value 0."""
    rows = rows.unflatten(0, (-1, vocabulary))
    return (rows[:, 1:] - rows[:, :1]).flatten(0, 1)


def _gaps_backward(grad: Float[Tensor, "gaps *width"], vocabulary: int) -> Float[Tensor, "outputs *width"]:
    grad = grad.unflatten(0, (-1, vocabulary - 1))
    return torch.cat([-grad.sum(1, keepdim=True), grad], 1).flatten(0, 1)
