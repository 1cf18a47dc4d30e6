"""Processes: how a state is built up step by step."""

from sabre.processes.blocks import Blocks
from sabre.processes.jumps import AnnealedJumps, Moments
from sabre.processes.masked import MaskedDiffusion, Path, masked_states, per_step, revealed, starts
from sabre.processes.order import ORDERS, Order, make_order
from sabre.processes.schedule import Schedule

__all__ = [
    "ORDERS",
    "AnnealedJumps",
    "Blocks",
    "MaskedDiffusion",
    "Moments",
    "Order",
    "Path",
    "Schedule",
    "make_order",
    "masked_states",
    "per_step",
    "revealed",
    "starts",
]
