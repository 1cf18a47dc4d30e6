"""Linear maps and embeddings with explicit randomness and the fastest exact float32 product the processor has."""

import functools
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.noise import Noise

__all__ = ["Embedding", "Linear", "linear", "matmul"]


class Linear(nn.Module):
    """y = W x + b, W and b uniform in +-1/sqrt(fan in), or zero."""

    def __init__(self, num_in: int, num_out: int, noise: Noise, *, zero: bool = False) -> None:
        super().__init__()
        bound = 0.0 if zero else 1 / math.sqrt(num_in)
        self.weight = nn.Parameter(_uniform(noise, (num_out, num_in), bound))
        self.bias = nn.Parameter(_uniform(noise, (num_out,), bound))

    def forward(self, x: Float[Tensor, "*batch num_in"]) -> Float[Tensor, "*batch num_out"]:
        return linear(x, self.weight, self.bias)


class Embedding(nn.Module):
    """One vector per integer, normal with the given standard deviation."""

    def __init__(self, num_items: int, width: int, noise: Noise, scale: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter((scale * noise.normal((num_items, width))).float().cpu())

    def forward(self, index: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch width"]:
        return nn.functional.embedding(index, self.weight)


def _uniform(noise: Noise, shape: tuple[int, ...], bound: float) -> Tensor:
    return ((2 * noise.uniform(shape) - 1) * bound).float().cpu()


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b through `matmul`, with a gradient that goes through it too."""
    if not _has_second_route(x.device.type, x.dtype):
        return nn.functional.linear(x, weight, bias)
    flat = x.reshape(-1, x.shape[-1])
    out: Tensor = _Product.apply(flat, weight, bias)
    return out.reshape(*x.shape[:-1], -1)


class _Product(torch.autograd.Function):
    """x W^T + b on matrices."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return matmul(x, weight.t(), bias)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        need_x, need_weight, need_bias = ctx.needs_input_grad  # type: ignore[attr-defined]
        return (
            matmul(grad, weight) if need_x else None,
            matmul(grad.t(), x) if need_weight else None,
            grad.sum(0) if need_bias else None,
        )


def matmul(a: Float[Tensor, "rows inner"], b: Float[Tensor, "inner columns"], bias: Tensor | None = None) -> Tensor:
    """a b (+ bias).

    PyTorch's default float32 product on the CPU reaches half of what its second library (oneDNN) does on some
    processors. The switch that selects the latter also allows reduced precision where the hardware has it, so it is
    used only where `_has_second_route` has seen that products come out at full float32 precision.
    """
    if not _has_second_route(a.device.type, a.dtype):
        return a @ b if bias is None else torch.addmm(bias, a, b)
    return _second_route(a, b, bias)


def _second_route(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    switch = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = switch.fp32_precision
    switch.fp32_precision = "bf16"
    try:
        return a @ b if bias is None else torch.addmm(bias, a, b)
    finally:
        switch.fp32_precision = before


@functools.cache
def _has_second_route(device: str, dtype: torch.dtype) -> bool:
    """True on CPUs where the second route exists and multiplies in full float32."""
    if device != "cpu" or dtype != torch.float32 or not hasattr(torch.backends.mkldnn, "matmul"):
        return False
    grid = torch.arange(256 * 256, dtype=torch.float64).reshape(256, 256)
    a, b = torch.sin(grid), torch.cos(1.7 * grid)
    error = (_second_route(a.float(), b.float()).double() - a.float().double() @ b.float().double()).abs().max()
    return float(error) < 1e-4
