"""A locally equivariant network: what it says about a site does not depend on that site's own value."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.errors import InvalidArgumentError
from sabre.networks.layers import Embedding, Linear
from sabre.networks.products import elu
from sabre.noise import Noise
from sabre.targets import Layout

__all__ = ["EquivariantNetwork"]

_FREQUENCIES = 6


class EquivariantNetwork(nn.Module):
    """Potentials U_i(c | x_{-i}, t) of the sites, and g(t), one number per time.

    G(b, i | x) = U_i(b) - U_i(x_i) = (e_b - e_{x_i}) . U_i is antisymmetric under x_i <-> b because U_i is hollow: a
    convolution over the torus without its centre, then residual blocks for each site alone, which are told the time
    and the local field at that site. `window` is the side of the convolution (0: all other sites); it reaches every
    other site at most once. `absolute` tells each site its place, where sites are not alike. All starts at zero.
    """

    hollow: Tensor
    cell_of_site: Tensor
    site_of_cell: Tensor

    def __init__(
        self,
        layout: Layout,
        num_categories: int,
        noise: Noise,
        *,
        width: int = 64,
        depth: int = 2,
        window: int = 0,
        absolute: bool = False,
    ) -> None:
        super().__init__()
        if window < 0 or (window > 0 and window % 2 == 0):
            raise InvalidArgumentError(f"window is {window}; use an odd side such as 5, or 0 for all other sites")
        self.num_categories = num_categories
        self.shape = (1, *layout.shape)[-2:]
        self.kernel = tuple(min(n, window or n) for n in self.shape)
        hollow = torch.ones(self.kernel)
        hollow[self.kernel[0] // 2, self.kernel[1] // 2] = 0
        place = torch.tensor([math.prod(layout.shape[axis + 1 :]) for axis in range(len(layout.shape))])
        cell = (layout.coords * place).sum(1)
        for name, constant in {"hollow": hollow, "cell_of_site": cell, "site_of_cell": cell.argsort()}.items():
            self.register_buffer(name, constant, persistent=False)
        self.look = Linear(num_categories * hollow.numel(), width, noise)
        self.tell = Linear(num_categories, width, noise)
        self.clock = Linear(2 * _FREQUENCIES + 1, width, noise)
        self.place = Embedding(len(cell), width, noise, scale=0.1) if absolute else None
        self.blocks = nn.ModuleList(_Block(width, noise) for _ in range(depth))
        self.out = Linear(width, num_categories, noise, zero=True)
        self.gain = Linear(width, 1, noise, zero=True)
        self.mean = Linear(width, 1, noise, zero=True)

    def forward(
        self,
        x: Int[Tensor, "batch dim"],
        times: Float[Tensor, " batch"],
        sites: Int[Tensor, " sites"],
        field: Float[Tensor, "batch sites categories"],
    ) -> Float[Tensor, "batch sites categories"]:
        """U of these sites; `field` is what the target says of each of their values, given all others."""
        field = field.to(self.look.weight.dtype)
        field = field - field.mean(-1, keepdim=True)
        clock = self._clock(times)
        timed = field * times.to(field.dtype)[:, None, None]
        h = self._look(x)[:, self.cell_of_site[sites]] + self.tell(timed) + clock.unsqueeze(1)
        if self.place is not None:
            h = h + self.place(sites)
        for block in self.blocks:
            h = block(h, clock.unsqueeze(1))
        return self.out(elu(h)) + field * self.gain(clock).unsqueeze(1)

    def mean_rate(self, times: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """g(t)."""
        rate: Tensor = self.mean(self._clock(times))
        return rate.squeeze(-1)

    def _clock(self, times: Float[Tensor, " batch"]) -> Float[Tensor, "batch width"]:
        turn = torch.pi * times.unsqueeze(1) * torch.arange(1, _FREQUENCIES + 1, device=times.device)
        features = torch.cat([times.unsqueeze(1), turn.sin(), turn.cos()], 1)
        return elu(self.clock(features.to(self.look.weight.dtype)))

    def _look(self, x: Int[Tensor, "batch dim"]) -> Float[Tensor, "batch cells width"]:
        """The window around every cell, its centre left out."""
        weight = self.look.weight.unflatten(1, (self.num_categories, *self.kernel)) * self.hollow
        grid = nn.functional.one_hot(x[:, self.site_of_cell], self.num_categories).to(weight.dtype)
        image = grid.transpose(1, 2).unflatten(2, self.shape)
        pad = [side for k in reversed(self.kernel) for side in (k // 2, k - 1 - k // 2)]
        around = nn.functional.pad(image, pad, mode="circular")
        return nn.functional.conv2d(around, weight, self.look.bias).flatten(2).transpose(1, 2)


class _Block(nn.Module):
    """h + W elu(V elu(h) + T clock)."""

    def __init__(self, width: int, noise: Noise) -> None:
        super().__init__()
        self.first = Linear(width, width, noise)
        self.time = Linear(width, width, noise)
        self.second = Linear(width, width, noise)

    def forward(
        self, h: Float[Tensor, "batch sites width"], clock: Float[Tensor, "batch 1 width"]
    ) -> Float[Tensor, "batch sites width"]:
        return h + self.second(elu(self.first(elu(h)) + self.time(clock)))
