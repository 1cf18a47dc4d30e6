"""Counts the floating-point operations of products and attention, also of those that PyTorch's own counter omits."""

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

__all__ = ["Flops"]


def _linear(x: torch.Tensor, weight: torch.Tensor) -> int:
    """(rows, in) times (in, out)."""
    return 2 * math.prod(x.shape) * weight.shape[0]


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> int:
    """Scores and the mean they weight; causal masks are counted as if nothing were skipped."""
    rows, queries, keys = math.prod(query.shape[:2]), query.shape[2], key.shape[2]
    return 2 * rows * queries * keys * (query.shape[3] + value.shape[3])


class Flops(TorchDispatchMode):
    """`total` after a `with` block: operations of the products made in it."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name, packet = func.name(), func._overloadpacket
        if name.startswith("mkldnn::_linear_pointwise"):
            self.total += _linear(args[0], args[1])
        elif name.startswith("aten::_scaled_dot_product_flash_attention_for_cpu_backward"):
            self.total += 5 * _attention(*args[1:4]) // 2
        elif name.startswith("aten::_scaled_dot_product_flash_attention_for_cpu"):
            self.total += _attention(*args[:3])
        elif packet in flop_registry:
            self.total += flop_registry[packet](*args, **(kwargs or {}), out_val=out)
        return out
