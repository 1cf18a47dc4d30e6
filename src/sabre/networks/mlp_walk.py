"""An MLP along whole trajectories: revealing a token changes one column of its input, so its first layer is a sum."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.networks.mlp_layers import Layers, expand_gradients, reduce_layers
from sabre.networks.products import binary_elu, binary_elu_backward_, linear, matmul
from sabre.processes import Path

__all__ = ["MLPWalk", "follow"]


class _Trail(NamedTuple):
    """Where trajectories went: what a backward pass needs beside the hidden layers.

    The first state, all masked, is the same for all of them and is there once: the states are (that one, those of step
    2 of all trajectories, those of step 3, ...). `row[j, b]` is the row of `change` that token j of the order of
    trajectory b adds. `asked[b, j]` is the place of its logits among those of (state, token). `sizes` are the tokens
    per step of the path.
    """

    path: Path
    row: Int[Tensor, "tokens batch"]
    asked: Int[Tensor, "batch tokens"]
    sizes: list[int]

    @classmethod
    def of(cls, tokens: Int[Tensor, "batch tokens"], path: Path, vocabulary: int) -> "_Trail":
        batch, num_tokens = tokens.shape
        order, device = path.order, tokens.device
        step = torch.arange(path.num_steps).repeat_interleave(path.schedule).to(device)
        state = (step * batch + torch.arange(1 - batch, 1, device=device).unsqueeze(1)).clamp_min(0)
        row = order * vocabulary + tokens.gather(1, order)
        return cls(path, row.t().contiguous(), state * num_tokens + order, path.schedule.tolist())


def _num_states(path: Path) -> int:
    return 1 + (path.num_steps - 1) * len(path.order)


def _by_step(states: Float[Tensor, "states width"], path: Path) -> tuple[Float[Tensor, "rows width"], ...]:
    """Views of what belongs to the states of each step: one row for the first step, then one per trajectory."""
    return states.split([1] + [len(path.order)] * (path.num_steps - 1))


class MLPWalk:
    """A batch of states on their way from all masked to all revealed."""

    def __init__(self, layers: Layers, vocabulary: int, path: Path, record: bool) -> None:
        self._whole, self._vocabulary, self._path = layers, vocabulary, path
        self._layers = reduce_layers(layers, vocabulary)
        self._change, base = self._layers[0]
        self._before, self._step = base.unsqueeze(0), 0
        self._kept = [base.new_empty(_num_states(path), len(base)) for _ in layers[1:]] if record else []
        self._slots = list(zip(*(_by_step(part, path) for part in self._kept), strict=True))
        self._gaps: list[Tensor] = []

    def logits(self, sites: Int[Tensor, "batch k"]) -> Float[Tensor, "batch k vocabulary"]:
        """Logits of these tokens in the current states."""
        slots = self._slots[self._step] if self._slots else (None,) * (len(self._layers) - 1)
        h = binary_elu(self._before, out=slots[0])
        for (weight, bias), slot in zip(self._layers[1:-1], slots[1:], strict=True):
            h = binary_elu(linear(h, weight, bias), out=slot)
        gaps = self._last_layer(h, sites)
        self._gaps.append(gaps)
        return _with_value_0(gaps)

    def _last_layer(
        self, h: Float[Tensor, "rows width"], sites: Int[Tensor, "batch k"]
    ) -> Float[Tensor, "batch k gaps"]:
        """The gaps that are asked for: as a scalar product if it is one per state, else from those of all tokens."""
        weight, bias = self._layers[-1]
        num_gaps = self._vocabulary - 1
        if num_gaps == sites.shape[1] == 1:
            token = sites.flatten()
            gap = torch.linalg.vecdot(weight.index_select(0, token), h).add_(bias.index_select(0, token))
            return gap.reshape(-1, 1, 1)
        gaps = linear(h, weight, bias).unflatten(1, (-1, num_gaps)).expand(len(sites), -1, -1)
        return gaps.gather(1, sites.unsqueeze(-1).expand(-1, -1, num_gaps))

    def reveal(self, sites: Int[Tensor, "batch k"], values: Int[Tensor, "batch k"]) -> None:
        """Put values where the mask was."""
        if self._step == 0:
            self._before = self._before.repeat(len(sites), 1)
        for row in torch.add(values, sites, alpha=self._vocabulary).unbind(1):
            self._before.add_(self._change.index_select(0, row))
        self._step += 1

    def recorded(self, tokens: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens vocabulary"] | None:
        """The logits of all the walk, with a gradient, if it was recorded; `tokens` is where it has ended."""
        if not self._slots:
            return None
        trail = _Trail.of(tokens, self._path, self._vocabulary)
        return _attach(self._whole, self._layers, trail, self._kept, torch.cat(self._gaps, 1))


def follow(
    layers: Layers, vocabulary: int, tokens: Int[Tensor, "batch tokens"], path: Path
) -> Float[Tensor, "batch tokens vocabulary"]:
    """Logits of every token, in the order of the path, in the state in which it is revealed."""
    trail = _Trail.of(tokens, path, vocabulary)
    with torch.no_grad():
        reduced = reduce_layers(layers, vocabulary)
        before, hidden = _first_layer(*reduced[0], trail), []
        for weight, bias in reduced[1:]:
            hidden.append(binary_elu(before))
            before = linear(hidden[-1], weight, bias)
        gaps = before.reshape(-1, vocabulary - 1).index_select(0, trail.asked.flatten())
    return _attach(layers, reduced, trail, hidden, gaps.unflatten(0, tokens.shape))


def _first_layer(
    change: Float[Tensor, "rows width"], base: Float[Tensor, " width"], trail: _Trail
) -> Float[Tensor, "states width"]:
    """What the first layer makes of all states, before its ELU."""
    before = base.new_empty(_num_states(trail.path), len(base))
    states, rows = _by_step(before, trail.path), trail.row.split(trail.sizes)[:-1]
    states[0].copy_(base)
    if rows:
        torch.index_select(change, 0, torch.cat([revealed[0] for revealed in rows]), out=before[1:])
    for state, after, revealed in zip(states, states[1:], rows, strict=False):
        after.add_(state)
        for row in revealed[1:]:
            after.add_(change.index_select(0, row))
    return before


def _attach(
    whole: Layers, reduced: Layers, trail: _Trail, hidden: list[Tensor], gaps: Float[Tensor, "batch tokens gaps"]
) -> Float[Tensor, "batch tokens vocabulary"]:
    attached: Tensor = _Gaps.apply(reduced, trail, hidden, gaps, *(part for layer in whole for part in layer))
    return _with_value_0(attached)


def _with_value_0(gaps: Float[Tensor, "batch k gaps"]) -> Float[Tensor, "batch k vocabulary"]:
    """Logits from their differences to the one of value 0."""
    return nn.functional.pad(gaps, (1, 0))


class _Gaps(torch.autograd.Function):
    """Gives gaps between logits that are known already, with the hidden layers behind them, their gradient."""

    @staticmethod
    def forward(
        ctx: Any, reduced: Layers, trail: _Trail, hidden: list[Tensor], gaps: Tensor, *parameters: Tensor
    ) -> Tensor:
        ctx.reduced, ctx.trail = reduced, trail
        ctx.save_for_backward(*hidden, *parameters)  # a change of the parameters before the backward pass is noticed
        return gaps.view_as(gaps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        trail: _Trail = ctx.trail
        hidden, num_gaps = ctx.saved_tensors[: len(ctx.reduced) - 1], grads[0].shape[2]
        grad = grads[0].new_zeros(len(hidden[0]) * len(trail.row), num_gaps)
        grad.index_add_(0, trail.asked.flatten(), grads[0].flatten(0, 1))
        grad = grad.reshape(len(hidden[0]), -1)
        found: list[Tensor] = []
        for h, (weight, _) in zip(reversed(hidden), reversed(ctx.reduced), strict=False):
            found = [matmul(grad.t(), h), grad.sum(0), *found]
            grad = binary_elu_backward_(linear(grad, weight.t(), None), h)
        first = _first_layer_backward(grad, trail, len(ctx.reduced[0][0]))
        return None, None, None, None, *expand_gradients([*first, *found], num_gaps + 1)


def _first_layer_backward(
    grad: Float[Tensor, "states width"], trail: _Trail, num_rows: int
) -> tuple[Float[Tensor, "rows width"], Float[Tensor, " width"]]:
    """Gradients of (change, base) from those of the states, which are overwritten.

    A token that is revealed in step n is in the input of all later states.
    """
    first, *later = _by_step(grad, trail.path)
    for state, after in zip(reversed(later[:-1]), reversed(later[1:]), strict=True):
        state += after
    change, base = grad.new_zeros(num_rows, grad.shape[-1]), first[0]
    if later:
        base = base + later[0].sum(0)
        sums = grad[1:]
        if len(trail.row) > len(trail.sizes):
            sums = torch.cat([part.repeat(size, 1) for part, size in zip(later, trail.sizes, strict=False)])
        rows = trail.row.flatten()[: len(sums)]
        change.index_add_(0, rows, sums)
    return change, base
