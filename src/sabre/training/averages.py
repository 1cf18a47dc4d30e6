"""Averaged weights: a network that follows the trained one slowly, and samples in its place."""

import torch
from torch import Tensor, nn

__all__ = ["Averages"]


class Averages:
    """Exponential moving averages of the trained weights, held in a network of their own.

    average <- d average + (1 - d) weight,   d = min(decay, (1 + t) / (10 + t)) after t updates: the first ones count
    little in the end.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self._averaged: list[Tensor] = [p for p in network.parameters() if p.requires_grad]
        self.network, self.decay, self.num_updates = network.requires_grad_(False), decay, 0

    def follow(self, weights: list[nn.Parameter]) -> None:
        """Take in the newest of the weights that are trained, in the order of `parameters()`."""
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        with torch.no_grad():
            torch._foreach_lerp_(self._averaged, [w.detach() for w in weights], 1 - decay)
        self.num_updates += 1

    def state_tensors(self) -> dict[str, Tensor]:
        """Everything that a checkpoint must hold."""
        return dict(self.network.state_dict()) | {"num_updates": torch.tensor([self.num_updates])}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Back to a saved state."""
        with torch.no_grad():
            for name, tensor in self.network.state_dict().items():
                tensor.copy_(tensors[name])
        self.num_updates = int(tensors["num_updates"])
