"""Small, peaked, asymmetric instances of every network, for exact tests."""

import itertools

import torch
from torch import Tensor, nn

from sabre.networks import MLP, AllSites, CausalNetwork, LocalFieldLogits, StateNetwork, ViT
from sabre.noise import Noise
from sabre.processes import Blocks, MaskedDiffusion, Path, Schedule, make_order
from sabre.targets import AbstractTarget, Layout, Pairwise


class PeakedTarget(AbstractTarget):
    """Unequal couplings and fields on a ring, several nats between states; no symmetry."""

    name = "peaked"

    def __init__(self, dim: int, num_categories: int) -> None:
        self.dim, self.num_categories = dim, num_categories
        edges = torch.tensor([(i, (i + 1) % dim) for i in range(dim)]) if dim > 1 else torch.zeros(0, 2).long()
        coupling = torch.linspace(0.3, 1.7, len(edges), dtype=torch.float64)
        field = torch.sin(3.0 * torch.arange(dim * num_categories, dtype=torch.float64)).reshape(dim, num_categories)
        self._pairwise = Pairwise(edges, coupling, 1.5 * field, 0.4)

    def log_density(self, x: Tensor) -> Tensor:
        return self._pairwise.log_density(x)

    @property
    def pairwise(self) -> Pairwise:
        return self._pairwise


class UserNet(nn.Module):
    """A network as a user might bring it: masked states to logits of all sites."""

    def __init__(self, num_tokens: int, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary + 1, 6)
        self.out = nn.Linear(6 * num_tokens, num_tokens * vocabulary)
        self.shape = (num_tokens, vocabulary)

    def forward(self, state: Tensor) -> Tensor:
        return self.out(self.table(state).flatten(1)).unflatten(1, self.shape)


def grid_layout(rows: int, columns: int) -> Layout:
    return Layout("torus", (rows, columns), torch.cartesian_prod(torch.arange(rows), torch.arange(columns)))


def randomised(network: nn.Module, seed: int = 0, scale: float = 0.8) -> nn.Module:
    """The same network in float64 with all parameters normal, so that nothing is zero or symmetric."""
    noise = Noise(seed)
    network = network.double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(scale * noise.normal(parameter.shape))
    return network


def _state(module: nn.Module, vocabulary: int, states_per_chunk: int = 10**6) -> StateNetwork:
    return StateNetwork(module, vocabulary, states_per_chunk)


def _networks(
    rows: int, columns: int, num_categories: int
) -> dict[str, tuple[AbstractTarget, MaskedDiffusion, nn.Module]]:
    """name -> (target, process, network) on rows x columns sites."""
    target = PeakedTarget(rows * columns, num_categories)
    layout = grid_layout(rows, columns)
    single = Blocks.boxes(layout, num_categories, (1, 1))
    double = Blocks.boxes(layout, num_categories, (1, 2))
    n, c, v = rows * columns, num_categories, num_categories**2
    noise = Noise(7)

    def process(blocks: Blocks) -> MaskedDiffusion:
        return MaskedDiffusion(blocks, make_order("random", blocks.layout), Schedule())

    def causal(blocks: Blocks, informed: bool, absolute: bool) -> CausalNetwork:
        local = LocalFieldLogits(target.pairwise, blocks) if informed else None
        return CausalNetwork(
            blocks.layout, blocks.vocabulary, noise, width=8, depth=2, heads=2, absolute=absolute, informed=local
        )

    nets: dict[str, tuple[Blocks, nn.Module]] = {
        "mlp": (single, _state(MLP(n, c, noise, width=6, depth=2), c)),
        "vit": (single, _state(ViT(layout, c, noise, width=8, depth=2, heads=2), c)),
        "vit-deep": (single, _state(ViT(layout, c, noise, width=8, depth=3, heads=1), c)),
        "vit-shallow": (single, _state(ViT(layout, c, noise, width=8, depth=1, heads=2), c)),
        "user": (single, _state(AllSites(UserNet(n, c), c), c)),
        "causal": (single, causal(single, False, True)),
        "causal-relative": (single, causal(single, False, False)),
        "causal-informed": (single, causal(single, True, True)),
        "causal-blocks": (double, causal(double, False, True)),
        "causal-blocks-informed": (double, causal(double, True, False)),
        "mlp-blocks": (double, _state(MLP(n // 2, v, noise, width=6, depth=1), v)),
    }
    return {name: (target, process(blocks), randomised(net)) for name, (blocks, net) in nets.items()}


NETWORKS = _networks(2, 2, 2)
NETWORKS_3 = _networks(1, 2, 3)


def all_schedules(num_tokens: int) -> list[Tensor]:
    """Every way to split the tokens into ordered steps."""
    found = []
    for cuts in itertools.product((False, True), repeat=num_tokens - 1):
        sizes, run = [], 1
        for cut in cuts:
            if cut:
                sizes.append(run)
                run = 1
            else:
                run += 1
        found.append(torch.tensor([*sizes, run]))
    return found


def all_orders(num_tokens: int) -> Tensor:
    return torch.tensor(list(itertools.permutations(range(num_tokens)))).reshape(-1, num_tokens)


def every_trajectory(process: MaskedDiffusion, schedule: Tensor) -> tuple[Tensor, Path]:
    """All pairs of token values and orders."""
    n, v = process.num_tokens, process.blocks.vocabulary
    tokens = torch.cartesian_prod(*[torch.arange(v)] * n).reshape(-1, n)
    orders = all_orders(n)
    return tokens.repeat_interleave(len(orders), 0), Path(orders.repeat(len(tokens), 1), schedule)
