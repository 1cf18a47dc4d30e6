"""Random-scan Gibbs sampling."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from sabre.mcmc.base import Proposal
from sabre.mcmc.heat_bath import heat_bath
from sabre.noise import NoiseLike
from sabre.targets import AbstractTarget

__all__ = ["Gibbs"]


@dataclass(frozen=True)
class Gibbs:
    """Draw one site, chosen uniformly in each chain, from its conditional p(x_i | the other sites).

    Pairwise targets give the conditional from the neighbours of the site; others evaluate all C variants.
    """

    def propose(self, x: Int[Tensor, "chains dim"], target: AbstractTarget, noise: NoiseLike) -> Proposal:
        chains, dim = x.shape
        site = noise.integers(dim, (chains,))
        logits, num_evaluations = _conditional(x, site, target)
        value = heat_bath(logits, x.gather(1, site.unsqueeze(1)).squeeze(1), noise)
        x = x.scatter(1, site.unsqueeze(1), value.unsqueeze(1))
        return Proposal(x, rejection_free=True, num_evaluations=num_evaluations)


def _conditional(
    x: Int[Tensor, "chains dim"], site: Int[Tensor, " chains"], target: AbstractTarget
) -> tuple[Float[Tensor, "chains categories"], int]:
    """Logits of the conditional, and how many log densities they cost per chain."""
    if target.pairwise is None:
        return target.site_log_density(x, site).double(), target.num_categories
    return target.pairwise.local_field(x, site.unsqueeze(1)).squeeze(1).double(), 0
