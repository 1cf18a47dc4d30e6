"""The kernels by name."""

from collections.abc import Callable

from sabre.errors import UnknownNameError
from sabre.mcmc.base import Kernel
from sabre.mcmc.categorical import Categorical
from sabre.mcmc.gibbs import Gibbs
from sabre.mcmc.hamming import HammingBall
from sabre.mcmc.swendsen_wang import SwendsenWang

__all__ = ["KERNELS", "make_kernel"]

KERNELS: dict[str, Callable[[], Kernel]] = {
    "categorical": Categorical,
    "gibbs": Gibbs,
    "hamming": HammingBall,
    "swendsen-wang": SwendsenWang,
}


def make_kernel(name: str) -> Kernel:
    """The kernel of that name with its default options; for others build it yourself, as in `HammingBall(radius=5)`."""
    if name not in KERNELS:
        raise UnknownNameError("kernel", name, KERNELS)
    return KERNELS[name]()
