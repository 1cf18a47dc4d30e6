"""The replay buffer: a ring of final states with priorities frozen at insertion."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import UnknownNameError
from sabre.noise import NoiseLike
from sabre.options import PRIORITIES

__all__ = ["ReplayBuffer", "priority_of"]


def priority_of(
    name: str, log_density: Float[Tensor, " batch"], log_weight: Float[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """The log of the weight with which a state is drawn: its importance weight, its density, or one."""
    if name == "weight":
        return log_weight
    if name == "density":
        return log_density
    if name == "uniform":
        return torch.zeros_like(log_weight)
    raise UnknownNameError("priority", name, PRIORITIES)


class ReplayBuffer:
    """The last `capacity` states, drawn with probability softmax(priority) over all that are held."""

    def __init__(self, capacity: int, dim: int, num_categories: int, device: torch.device | str = "cpu") -> None:
        dtype = torch.uint8 if num_categories <= 256 else torch.int32
        self._x = torch.zeros(capacity, dim, dtype=dtype, device=device)
        self._log_density = torch.zeros(capacity, dtype=torch.float64, device=device)
        self._priority = torch.full((capacity,), -torch.inf, dtype=torch.float64, device=device)
        self._added = 0

    @property
    def capacity(self) -> int:
        return len(self._x)

    def __len__(self) -> int:
        return min(self._added, self.capacity)

    def add(
        self,
        x: Int[Tensor, "batch dim"],
        log_density: Float[Tensor, " batch"],
        priority: Float[Tensor, " batch"],
    ) -> Int[Tensor, " kept"]:
        """Append states, over the oldest ones once the ring is full; of more than fit, the last are kept.

        Returns where they went.
        """
        x, log_density, priority = x[-self.capacity :], log_density[-self.capacity :], priority[-self.capacity :]
        place = (self._added + torch.arange(len(x), device=self._x.device)) % self.capacity
        self._x[place] = x.to(self._x.dtype)
        self._log_density[place] = log_density.double()
        self._priority[place] = priority.double()
        self._added += len(x)
        return place

    def draw(self, n: int, noise: NoiseLike) -> tuple[Int[Tensor, "n dim"], Float[Tensor, " n"]]:
        """n states with replacement, and their log densities."""
        return self.at(self.choose(n, noise))

    def choose(self, n: int, noise: NoiseLike) -> Int[Tensor, " n"]:
        """The places of n states, with replacement."""
        priority = self._priority[: len(self)]
        if bool(torch.isneginf(priority).all()):
            priority = torch.zeros_like(priority)
        return noise.index(priority, n)

    def at(self, place: Int[Tensor, " n"]) -> tuple[Int[Tensor, "n dim"], Float[Tensor, " n"]]:
        """The states that are there, and their log densities."""
        return self._x[place].long(), self._log_density[place]

    def state_tensors(self) -> dict[str, Tensor]:
        """Everything that a checkpoint must hold."""
        return {
            "x": self._x,
            "log_density": self._log_density,
            "priority": self._priority,
            "added": torch.tensor([self._added]),
        }

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Back to a saved state, ring position included."""
        self._x.copy_(tensors["x"])
        self._log_density.copy_(tensors["log_density"])
        self._priority.copy_(tensors["priority"])
        self._added = int(tensors["added"])
