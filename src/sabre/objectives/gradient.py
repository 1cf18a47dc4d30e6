"""From coefficients to gradients: sum_b c_b grad log p(tau_b), in memory that does not grow with the trajectory."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.networks import Trainable
from sabre.noise import NoiseLike
from sabre.processes import Moments, Path

__all__ = ["add_gradient", "backpropagate", "choose_steps", "log_likelihood"]

Coefficients = Callable[[Float[Tensor, " batch"]], Float[Tensor, " batch"]]


def log_likelihood(
    network: Trainable, tokens: Int[Tensor, "batch tokens"], path: Path | Moments
) -> Float[Tensor, " batch"]:
    """log p of whole trajectories, without a graph, chunk by chunk."""
    total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
    with torch.no_grad():
        for rows, steps in network.chunks(len(tokens), path.num_steps):
            total[rows] += _part(network, tokens, path, None, rows, steps).double().sum(1)
    return total


def choose_steps(
    batch: int, num_steps: int, drop: float, noise: NoiseLike
) -> tuple[Int[Tensor, "batch chosen"] | None, float]:
    """A random subset of the steps of each trajectory, and the factor that keeps the gradient's expectation.

    None stands for all the steps.
    """
    keep = max(1, round((1 - drop) * num_steps))
    if keep == num_steps:
        return None, 1.0
    return noise.permutation(batch, num_steps)[:, :keep], num_steps / keep


def backpropagate(
    network: Trainable,
    tokens: Int[Tensor, "batch tokens"],
    path: Path | Moments,
    coefficients_of: Coefficients,
    *,
    log_pf: Float[Tensor, " batch"] | None = None,
    steps: Int[Tensor, "batch chosen"] | None = None,
    scale: float = 1.0,
) -> None:
    """Add scale * sum_b c_b sum_n grad log p(step n of tau_b) to the gradients.

    The coefficients depend on log p of the whole trajectories: `log_pf` if the rollout has told it, which needs no
    other pass if it has a graph. Otherwise one pass with a graph serves both purposes where everything fits into one
    chunk, and a pass without a graph comes first where it does not.
    """
    batch = len(tokens)
    num_steps = path.num_steps if steps is None else steps.shape[1]
    chunks = list(network.chunks(batch, num_steps))
    if steps is None and log_pf is None and len(chunks) == 1:
        log_pf = network.step_log_probs(tokens, path).double().sum(1)
    if steps is None and log_pf is not None and log_pf.requires_grad:
        add_gradient(log_pf, scale * coefficients_of(log_pf.detach()))
        return
    known = log_likelihood(network, tokens, path) if log_pf is None else log_pf.detach()
    coefficients = scale * coefficients_of(known)
    for rows, part in chunks:
        add_gradient(_part(network, tokens, path, steps, rows, part).sum(1), coefficients[rows])


def add_gradient(log_p: Float[Tensor, " rows"], coefficients: Float[Tensor, " rows"]) -> None:
    """Add sum_b c_b grad log p_b to the gradients."""
    (log_p * coefficients.to(log_p.dtype)).sum().backward()


def _part(
    network: Trainable, tokens: Tensor, path: Path | Moments, steps: Tensor | None, rows: slice, columns: slice
) -> Float[Tensor, "rows columns"]:
    """log p of some of the steps (None: of all of them) of some of the trajectories."""
    part = path.part(rows)
    if steps is None and columns.start == 0 and columns.stop >= path.num_steps:
        return network.step_log_probs(tokens[rows], part)
    if steps is None:
        steps = torch.arange(path.num_steps, device=tokens.device).expand(len(tokens), -1)
    return network.step_log_probs(tokens[rows], part, steps[rows, columns])
