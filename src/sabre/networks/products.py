"""Products, attention and ELU, each by the fastest route that is exact in float32.

PyTorch's default float32 product on the CPU reaches half of the rate of oneDNN on some processors. Where both routes
to oneDNN are there, and are seen to multiply in full float32, they are taken; elsewhere PyTorch's own are.
"""

import functools
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["LOG2_E", "attention", "binary_elu", "binary_elu_backward_", "elu", "linear", "matmul"]

Grads = tuple[Tensor | None, ...]
LOG2_E = 1 / math.log(2)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b, with a gradient."""
    if not torch.is_grad_enabled():
        return _linear(x, weight, bias)
    if not _has_onednn(x.device.type, x.dtype):
        return nn.functional.linear(x, weight, bias)
    out: Tensor = _Product.apply(x, weight, bias)
    return out


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a b, matrices or batches of them. No gradient.

    The switch that selects oneDNN here would also allow reduced precision where the hardware has it.
    """
    if not _has_onednn(a.device.type, a.dtype):
        return a @ b
    return _onednn_matmul(a, b)


def attention(
    query: Float[Tensor, "rows heads queries channels"],
    key: Float[Tensor, "rows heads keys channels"],
    value: Float[Tensor, "rows heads keys channels"],
) -> Float[Tensor, "rows heads queries channels"]:
    """softmax(q k^T / sqrt(channels)) v without a mask.

    With few channels per head, three batched products that keep the weights are faster on the CPU than a fused kernel
    that computes them again for the gradient.
    """
    if query.device.type != "cpu":
        return nn.functional.scaled_dot_product_attention(query, key, value)
    heads = query.shape[1]
    out: Tensor = _Attention.apply(*(part.flatten(0, 1) for part in (query, key, value)))
    return out.unflatten(0, (-1, heads))


def elu(x: Tensor) -> Tensor:
    """max(x, e^min(x, 0) - 1), with a gradient.

    The kernel of exp2 is several times faster than those of exp and expm1, and the error is one of rounding.
    """
    if not torch.is_grad_enabled():
        return _elu(x)
    result: Tensor = _ELU.apply(x)
    return result


def binary_elu(y: Tensor, out: Tensor | None = None) -> Tensor:
    """c ELU(y / c) with c = log2(e), where e^(y/c) = 2^y. No gradient. `out` must not be y itself."""
    assert out is not y, "y is read again after the first write"
    below = torch.clamp_max(y, 0, out=out).exp2_()
    below = torch.add(_minus_log2_e(y.device, y.dtype), below, alpha=LOG2_E, out=below)
    return torch.maximum(y, below, out=below)


def binary_elu_backward_(grad: Tensor, result: Tensor) -> Tensor:
    """Multiply a gradient, in its place, by the derivative of `binary_elu`: 1 + min(result, 0) / c."""
    return torch.ops.aten.elu_backward.grad_input(grad, LOG2_E, 1, 1 / LOG2_E, True, result, grad_input=grad)


class _Product(torch.autograd.Function):
    """x W^T + b."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _linear(x, weight, bias)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Grads:
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        need_x, need_weight, need_bias = ctx.needs_input_grad  # type: ignore[attr-defined]
        grad = grads[0].flatten(0, -2)
        return (
            _linear(grads[0], weight.t(), None) if need_x else None,
            matmul(grad.t(), x.flatten(0, -2)) if need_weight else None,
            grad.sum(0) if need_bias else None,
        )


class _Attention(torch.autograd.Function):
    """P v with P = softmax(q k^T / sqrt(channels)), for batches of matrices."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scaled = query * (1 / math.sqrt(query.shape[-1]))
        weights = matmul(scaled, key.transpose(1, 2)).softmax(-1)
        ctx.save_for_backward(scaled, key, value, weights)
        return matmul(weights, value)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Grads:
        scaled, key, value, weights = ctx.saved_tensors  # type: ignore[attr-defined]
        grad = grads[0]
        # (g^T P)^T and not P^T g: the large factor is read as it lies.
        grad_value = matmul(grad.transpose(1, 2), weights).transpose(1, 2)
        grad_weights = matmul(grad, value.transpose(1, 2))
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
        grad_query = matmul(grad_scores, key).mul_(1 / math.sqrt(key.shape[-1]))
        return grad_query, matmul(scaled.transpose(1, 2), grad_scores).transpose(1, 2), grad_value


class _ELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        out = _elu(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors  # type: ignore[attr-defined]
        grad: Tensor = torch.ops.aten.elu_backward(grads[0], 1, 1, 1, True, out)
        return grad


def _elu(x: Tensor) -> Tensor:
    return torch.maximum(x, torch.clamp_max(x, 0).mul_(LOG2_E).exp2_().sub_(1))


@functools.cache
def _minus_log2_e(device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor(-LOG2_E, dtype=dtype, device=device)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not _has_onednn(x.device.type, x.dtype):
        return nn.functional.linear(x, weight, bias)
    return _onednn_linear(x, weight, bias)


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return out


def _onednn_matmul(a: Tensor, b: Tensor) -> Tensor:
    switch = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = switch.fp32_precision
    switch.fp32_precision = "bf16"
    try:
        return a @ b
    finally:
        switch.fp32_precision = before


@functools.cache
def _has_onednn(device: str, dtype: torch.dtype) -> bool:
    """True on CPUs where both routes to oneDNN exist and multiply in full float32."""
    if device != "cpu" or dtype != torch.float32 or not hasattr(torch.backends.mkldnn, "matmul"):
        return False
    grid = torch.arange(256 * 256, dtype=torch.float64).reshape(256, 256)
    a, b = torch.sin(grid).float(), torch.cos(1.7 * grid).float()
    exact = a.double() @ b.double()
    try:
        products = (_onednn_matmul(a, b), _onednn_matmul(a[None], b[None])[0], _onednn_linear(a, b.t(), None))
    except (AttributeError, RuntimeError):
        return False
    return all(float((product.double() - exact).abs().max()) < 1e-4 for product in products)
