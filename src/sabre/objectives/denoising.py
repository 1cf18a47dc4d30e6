"""The denoising estimator: gradients of log p from random masks instead of whole trajectories."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.networks import Trainable
from sabre.noise import NoiseLike
from sabre.objectives.gradient import add_gradient
from sabre.processes import Path

__all__ = ["Masks", "choose_masks", "denoise"]

Masks = list[tuple[Int[Tensor, "batch tokens"], int]]
"""For each replicate the order of each row, and how many tokens of it are shown."""


def choose_masks(tokens: Int[Tensor, "batch tokens"], replicates: int, noise: NoiseLike) -> Masks:
    """`replicates` random masks per row: a random permutation each, and a number of shown tokens for each replicate.

    The numbers are spread evenly over 0..num_tokens-1 from a random start, so that each one alone is uniform.
    """
    batch, num_tokens = tokens.shape
    start = int(noise.integers(num_tokens, (1,))[0])
    shown = [(start + replicate * num_tokens // replicates) % num_tokens for replicate in range(replicates)]
    return [(noise.permutation(batch, num_tokens), m) for m in shown]


def denoise(
    network: Trainable, tokens: Int[Tensor, "batch tokens"], coefficients: Float[Tensor, " batch"], masks: Masks
) -> None:
    """Add the gradient of weighted denoising cross-entropy to the gradients.

    With m of n tokens shown, m uniform on 0..n-1 and the order uniformly random,
        E[n / (n - m) sum_{i masked} log p(x_i | shown)] = E[log p(tau)]
    over the one-by-one trajectories tau that end in x, so that the mean of
        c_b n / (n - m) sum_{i masked} grad log p(x_{b, i} | shown)
    over masks is sum_b c_b grad log p(tau_b). The factor is 1/lambda with the share lambda = (n - m) / n of masked
    tokens, and at most n.
    """
    n = tokens.shape[1]
    for order, shown in masks:
        schedule = torch.tensor([shown, n - shown] if shown else [n])
        scale = n / (n - shown) / len(masks)
        for rows, _ in network.chunks(len(tokens), 1):
            last = torch.full((len(tokens[rows]), 1), len(schedule) - 1, device=tokens.device)
            log_p = network.step_log_probs(tokens[rows], Path(order[rows], schedule), last).squeeze(1)
            add_gradient(log_p, scale * coefficients[rows])
