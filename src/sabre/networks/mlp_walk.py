"""An MLP along whole trajectories: revealing a token changes one column of its input, so its first layer is a sum."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.networks.products import elu, elu_backward, linear, matmul
from sabre.processes import Path

__all__ = ["MLPWalk", "follow"]

Layers = Sequence[tuple[Tensor, Tensor]]
"""(change, base), then (weight, bias) of the others: see `MLP._layers`."""


class _Trail(NamedTuple):
    """Where trajectories went: what a backward pass needs beside the hidden layers.

    `row[j, b]` is the row of `change` that token j of the order of trajectory b adds. `asked[b, j]` is the place of
    its logits among those of all tokens in all states, (step, batch, token). `sizes` are the tokens per step.
    """

    row: Int[Tensor, "tokens batch"]
    asked: Int[Tensor, "batch tokens"]
    sizes: list[int]

    @classmethod
    def of(cls, tokens: Int[Tensor, "batch tokens"], path: Path, vocabulary: int) -> "_Trail":
        batch, num_tokens = tokens.shape
        order, device = path.order, tokens.device
        step = torch.arange(path.num_steps).repeat_interleave(path.schedule).to(device)
        state = step * batch + torch.arange(batch, device=device).unsqueeze(1)
        row = order * vocabulary + tokens.gather(1, order)
        return cls(row.t().contiguous(), state * num_tokens + order, path.schedule.tolist())


class MLPWalk:
    """A batch of states on their way from all masked to all revealed."""

    def __init__(self, layers: Layers, vocabulary: int, path: Path, record: bool) -> None:
        self._attached, self._vocabulary, self._path = layers, vocabulary, path
        self._layers = [(weight.detach(), bias.detach()) for weight, bias in layers]
        self._change, base = self._layers[0]
        batch, steps = len(path.order), path.num_steps if record else 1
        self._before = base.repeat(batch, 1)
        self._hidden = [base.new_empty(steps, batch, len(base)) for _ in layers[1:]]
        self._record, self._made = record, 0

    def logits(self, sites: Int[Tensor, "batch k"]) -> Float[Tensor, "batch k vocabulary"]:
        """Logits of these tokens in the current states."""
        h, before = self._before, self._before
        for hidden, (weight, bias) in zip(self._hidden, self._layers[1:], strict=True):
            h = elu(before, out=hidden[self._made])
            before = linear(h, weight, bias)
        logits = before.unflatten(1, (-1, self._vocabulary))
        return logits.gather(1, sites.unsqueeze(-1).expand(-1, -1, self._vocabulary))

    def reveal(self, sites: Int[Tensor, "batch k"], values: Int[Tensor, "batch k"]) -> None:
        """Put values where the mask was."""
        rows = sites * self._vocabulary + values
        for row in rows.unbind(1):
            self._before += self._change.index_select(0, row)
        self._made += self._record

    def recorded(self, tokens: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens vocabulary"] | None:
        """The logits of all the walk, with a gradient, if it was recorded; `tokens` is where it has ended."""
        if not self._record:
            return None
        trail = _Trail.of(tokens, self._path, self._vocabulary)
        return _attach(self._attached, trail, self._hidden, self._vocabulary)


def follow(
    layers: Layers, vocabulary: int, tokens: Int[Tensor, "batch tokens"], path: Path
) -> Float[Tensor, "batch tokens vocabulary"]:
    """Logits of every token, in the order of the path, in the state in which it is revealed."""
    trail = _Trail.of(tokens, path, vocabulary)
    with torch.no_grad():
        change, base = layers[0]
        before = base.new_empty(path.num_steps, len(tokens), len(base))
        before[0] = base
        for n, rows in enumerate(trail.row.split(path.schedule.tolist())[:-1]):
            torch.add(before[n], change.index_select(0, rows[0]), out=before[n + 1])
            for row in rows[1:]:
                before[n + 1] += change.index_select(0, row)
        hidden = [elu(before)]
        for weight, bias in layers[1:-1]:
            before = linear(hidden[-1], weight, bias)
            hidden.append(elu(before))
    return _attach(layers, trail, hidden, vocabulary)


def _attach(
    layers: Layers, trail: _Trail, hidden: list[Tensor], vocabulary: int
) -> Float[Tensor, "batch tokens vocabulary"]:
    logits: Tensor = _Logits.apply(trail, hidden, vocabulary, *(part for layer in layers for part in layer))
    return logits


class _Logits(torch.autograd.Function):
    """The logits that a trail asks for, from hidden layers (steps, batch, width) that are known already."""

    @staticmethod
    def forward(ctx: Any, trail: _Trail, hidden: list[Tensor], vocabulary: int, *flat: Tensor) -> Tensor:
        ctx.trail, ctx.shape = trail, (*hidden[-1].shape[:2], vocabulary)
        ctx.save_for_backward(*hidden, *flat)
        weight, bias = flat[-2:]
        logits = linear(hidden[-1].flatten(0, 1), weight, bias).reshape(-1, vocabulary)
        return logits.index_select(0, trail.asked.flatten()).unflatten(0, trail.asked.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        depth = (len(ctx.saved_tensors) - 2) // 3
        hidden, flat = ctx.saved_tensors[:depth], ctx.saved_tensors[depth:]
        steps, batch, vocabulary = ctx.shape
        found: list[Tensor] = []
        grad = grads[0].new_zeros(steps * batch * len(ctx.trail.row), vocabulary)
        grad.index_copy_(0, ctx.trail.asked.flatten(), grads[0].flatten(0, 1))
        grad = grad.reshape(steps * batch, -1)
        for h, weight in zip(reversed(hidden), reversed(flat[2::2]), strict=True):
            h = h.flatten(0, 1)
            found = [matmul(grad.t(), h), grad.sum(0), *found]
            grad = elu_backward(linear(grad, weight.t(), None), h)
        first = _first_layer(grad.unflatten(0, (steps, batch)), ctx.trail, len(flat[0]))
        return None, None, None, *first, *found


def _first_layer(
    grad: Float[Tensor, "steps batch width"], trail: _Trail, num_rows: int
) -> tuple[Float[Tensor, "rows width"], Float[Tensor, " width"]]:
    """Gradients of (change, base) from those of the states, which are overwritten.

    A token that is revealed in step n is in the input of all later states.
    """
    for n in range(len(grad) - 2, -1, -1):
        grad[n] += grad[n + 1]
    later = grad[1:]
    if len(trail.row) > len(grad) > 1:
        later = torch.cat([part.expand(size, -1, -1) for part, size in zip(later, trail.sizes, strict=False)])
    rows = trail.row[: len(later)].flatten()
    change = grad.new_zeros(num_rows, grad.shape[-1]).index_add_(0, rows, later.flatten(0, 1))
    return change, grad[0].sum(0)
