"""Annealed jumps: a Markov chain that carries the uniform law to the target along rho_t(x) = exp(t log_density(x))."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.errors import InvalidArgumentError
from sabre.noise import NoiseLike
from sabre.targets import Pairwise

__all__ = ["AnnealedJumps", "Moments", "conditional", "flow", "growth", "independent_sites", "resample", "site_kernel"]

PerValue = Float[Tensor, "batch sites categories"]
_MAX_CLASSES = 4
_DOUBLINGS = 3


@dataclass(frozen=True)
class AnnealedJumps:
    """N steps from t = 0 to t = 1, with rates of jumps of one site at a time.

        Q_t(x_i -> b) = ([G_t(b, i | x)]_+ + kappa) m_t(b | x_{-i}),     m_t = softmax(t local field)

    G is antisymmetric: G_t(b, i | x) = -G_t(x_i, i | x with x_i = b). m_t, the conditional of rho_t, is in detailed
    balance with it: kappa > 0 moves no mass, it lets every site go everywhere, forwards and backwards. -G has the
    reversed rates. G = 0 is annealed importance sampling with heat-bath moves.
    Times are t(s) = s + slowing s (1 - s) on an even grid of s: steps become shorter by (1 + slowing) / (1 - slowing)
    on the way. Where the effective sample size of a batch is below `resample_below` times its size, it is resampled
    (0: never).
    """

    num_steps: int = 32
    kappa: float = 32.0
    slowing: float = 0.6
    resample_below: float = 0.0

    def __post_init__(self) -> None:
        if self.num_steps < 1:
            raise InvalidArgumentError(f"jumps in {self.num_steps} steps; use at least 1")
        if not 0 < self.kappa < math.inf:
            raise InvalidArgumentError(
                f"kappa is {self.kappa}; with a rate that is not positive some moves have no way back, use one above 0"
            )
        if not 0 <= self.slowing < 1:
            raise InvalidArgumentError(f"slowing is {self.slowing}; use a number from 0 (even steps) to below 1")
        if not 0 <= self.resample_below <= 1:
            raise InvalidArgumentError(f"resample_below is {self.resample_below}; use a fraction between 0 and 1")

    @cached_property
    def times(self) -> Float[Tensor, " times"]:
        """t_0 = 0 < ... < t_N = 1."""
        s = torch.arange(self.num_steps + 1, dtype=torch.float64) / self.num_steps
        return s + self.slowing * s * (1 - s)


@dataclass(frozen=True)
class Moments:
    """The times at which states were seen: each row is a trajectory of one step."""

    times: Float[Tensor, " batch"]

    @property
    def num_steps(self) -> int:
        return 1

    def part(self, rows: slice) -> "Moments":
        return Moments(self.times[rows])


def conditional(local_field: PerValue, times: Float[Tensor, " batch"]) -> PerValue:
    """log m_t(c | x_{-i}): the law of a site under rho_t, given all others."""
    return (times.double()[:, None, None] * local_field.double()).log_softmax(-1)


def flow(potential: PerValue, current: Int[Tensor, "batch sites"]) -> PerValue:
    """G(b, i | x) = U_i(b) - U_i(x_i): antisymmetric, since U_i does not depend on x_i."""
    return potential - potential.gather(-1, current.unsqueeze(-1))


def growth(flow: PerValue, log_m: PerValue) -> Float[Tensor, " batch"]:
    """K_t(x), the rate at which the jumps change log rho_t(x): what comes in, less what goes out.

        K = sum_{i, b} (Q(b -> x_i) rho(x_i = b) / rho(x) - Q(x_i -> b)) = -sum_{i, b} G(b, i | x) m(b | x_{-i})

    By detailed balance both directions carry the same factor, so K is linear in G and no ratio can overflow.
    """
    return -(flow * log_m.exp()).sum((1, 2))


def site_kernel(
    potential: PerValue, log_m: PerValue, current: Int[Tensor, "batch sites"], dt: float, kappa: float
) -> PerValue:
    """log p(b) of each site after a time dt in which all others are held still.

    With L_a = sum_b Q(a -> b), b = a included, one event at most gives p(a -> b) = m_b R_ab + 1[a = b] s_a with

        R_ab = (kappa + [U_b - U_a]_+) (1 - exp(-L_a dt)) / L_a,     s_a = exp(-L_a dt)

    Each doubling of the time is a product of matrices, R <- R diag(m) R + (s_a + s_b) R and s <- s^2, which leaves all
    terms positive, so that small probabilities keep their digits.
    """
    m = log_m.exp().unsqueeze(-2)
    rate = kappa + (potential.unsqueeze(-2) - potential.unsqueeze(-1)).relu()
    spent = (rate * m).sum(-1, keepdim=True) * (dt / 2**_DOUBLINGS)
    jumped, stayed = rate * (dt / 2**_DOUBLINGS) * -torch.expm1(-spent) / spent, -spent
    for _ in range(_DOUBLINGS):
        s = stayed.exp()
        jumped, stayed = (jumped * m) @ jumped + (s + s.mT) * jumped, 2 * stayed
    at = current[..., None, None]
    leave = log_m + jumped.take_along_dim(at, -2).squeeze(-2).log()
    stay = torch.logaddexp(leave, stayed.take_along_dim(at, -2).squeeze(-2))
    here = torch.arange(log_m.shape[-1], device=current.device) == current.unsqueeze(-1)
    return torch.where(here, stay, leave)


def resample(
    log_weight: Float[Tensor, " batch"], below: float, noise: NoiseLike
) -> tuple[Int[Tensor, " batch"], Float[Tensor, " batch"]]:
    """Which rows go on, and their log-weights: where rows are drawn by weight, all carry the mean weight.

    The mean of the weights keeps its expectation. The rows do not stay independent of each other.
    """
    n = len(log_weight)
    log_sum = log_weight.logsumexp(0)
    if float((2 * log_sum - (2 * log_weight).logsumexp(0)).exp()) >= below * n:
        return torch.arange(n, device=log_weight.device), log_weight
    return noise.index(log_weight, n), (log_sum - math.log(n)).expand(n)


def independent_sites(pairwise: Pairwise) -> tuple[Int[Tensor, " members"], ...]:
    """Classes of sites without a coupling inside, which may move at once and be in detailed balance still.

    Where the couplings need more than four classes, one class with every site: fewer and coarser moves.
    """
    neighbour, weight, _ = pairwise.neighbours
    colours: list[int] = []
    for site, (others, couplings) in enumerate(zip(neighbour.tolist(), weight.tolist(), strict=True)):
        taken = {colours[j] for j, c in zip(others, couplings, strict=True) if c != 0 and j < site}
        colours.append(min(set(range(len(taken) + 1)) - taken))
    colour = torch.tensor(colours)
    if int(colour.max()) >= _MAX_CLASSES:
        return (torch.arange(pairwise.dim),)
    return tuple((colour == c).nonzero().squeeze(1) for c in range(int(colour.max()) + 1))
