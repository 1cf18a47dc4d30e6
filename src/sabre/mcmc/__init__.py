"""Markov chains that leave a target invariant: kernels, the accept step, and whole runs."""

from sabre.mcmc.accept import init, step
from sabre.mcmc.autocorrelation import integrated_time
from sabre.mcmc.base import ChainState, Kernel, Proposal, StepInfo
from sabre.mcmc.categorical import Categorical
from sabre.mcmc.convergence import split_r_hat
from sabre.mcmc.gibbs import Gibbs
from sabre.mcmc.hamming import HammingBall
from sabre.mcmc.registry import KERNELS, make_kernel
from sabre.mcmc.run import ChainResult, advance, run
from sabre.mcmc.swendsen_wang import SwendsenWang, require_ferromagnet

__all__ = [
    "KERNELS",
    "Categorical",
    "ChainResult",
    "ChainState",
    "Gibbs",
    "HammingBall",
    "Kernel",
    "Proposal",
    "StepInfo",
    "SwendsenWang",
    "advance",
    "init",
    "integrated_time",
    "make_kernel",
    "require_ferromagnet",
    "run",
    "split_r_hat",
    "step",
]
