"""How many independent samples a correlated series is worth."""

import torch
from jaxtyping import Float
from torch import Tensor

from sabre.errors import InvalidArgumentError

__all__ = ["integrated_time"]

_WINDOW = 5.0


def integrated_time(series: Float[Tensor, "steps chains"]) -> float:
    """tau = 1 + 2 sum_{t=1}^{M} rho(t), with M the smallest lag that is at least 5 tau(M) (Sokal's window).

    rho(t) = gamma(t) / gamma(0), where gamma(t) = (1 / steps) sum_s (f_s - mean) (f_{s+t} - mean) is averaged over the
    chains. The mean is that of all chains together, so chains that disagree count as correlated. The result lies in
    [1, steps]: no fewer than one sample per chain and no more than one per step. A constant series gives `steps`.
    """
    steps = len(series)
    if series.numel() == 0 or not series.isfinite().all():
        raise InvalidArgumentError(
            f"integrated_time: series of shape {tuple(series.shape)} is empty or not finite; "
            "pass finite values, such as log densities after the burn-in"
        )
    if (series == series[0, 0]).all():
        return float(steps)
    gamma = _autocovariance(series.double())
    tau = 2 * (gamma / gamma[0]).cumsum(0) - 1
    lag = torch.arange(steps, device=series.device)
    beyond = (lag >= _WINDOW * tau).nonzero()
    window = int(beyond[0]) if len(beyond) else steps - 1
    return min(max(float(tau[window]), 1.0), float(steps))


def _autocovariance(series: Float[Tensor, "steps chains"]) -> Float[Tensor, " steps"]:
    """gamma(t) for t = 0..steps-1, by FFT with enough zeros behind to keep the ends apart."""
    steps = len(series)
    spectrum = torch.fft.rfft(series - series.mean(), n=2 * steps, dim=0)
    power = (spectrum.abs() ** 2).mean(1)
    return torch.fft.irfft(power, n=2 * steps)[:steps] / steps
