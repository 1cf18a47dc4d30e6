"""Networks: each turns partial states into log-probabilities, and all answer the same two calls."""

from sabre.networks.base import Chunk, Network, Rollout, Trainable
from sabre.networks.causal import CausalNetwork
from sabre.networks.equivariant import EquivariantNetwork
from sabre.networks.informed import LocalFieldLogits
from sabre.networks.jump import JumpNetwork, Simulation
from sabre.networks.mlp import MLP
from sabre.networks.state import AllSites, StateNetwork
from sabre.networks.vit import ViT

__all__ = [
    "MLP",
    "AllSites",
    "CausalNetwork",
    "Chunk",
    "EquivariantNetwork",
    "JumpNetwork",
    "LocalFieldLogits",
    "Network",
    "Rollout",
    "Simulation",
    "StateNetwork",
    "Trainable",
    "ViT",
]
