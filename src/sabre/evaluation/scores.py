"""How good a sampler is: bounds on log Z, effective sample size, and the truth beside them."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sabre.evaluation.samplers import WeightedSampler
from sabre.evaluation.text import scores_text
from sabre.evaluation.truth import TrueSamples
from sabre.metrics import Estimate, Progress, effective_sample_size, importance_log_z, mean_estimate, share
from sabre.noise import Noise
from sabre.targets import AbstractTarget

__all__ = ["Scores", "evaluate"]

NONE_FORBIDDEN = Estimate(0.0, 0.0)


@dataclass(frozen=True)
class Scores:
    """ELBO <= log Z <= EUBO, the importance-weighted log Z and the effective sample size per sample.

    `eubo` is None where the target has no samples, `log_z_exact` where nobody knows it. `phases` are the shares of the
    symmetric images (spin up and down, majority colours) among the samples, `forbidden` is that of samples with
    log density -inf, of which a single one makes the ELBO -inf. `extra` are figures of this kind of sampler alone,
    `x` the samples behind the figures.
    """

    elbo: Estimate
    eubo: Estimate | None
    log_z: Estimate
    ess: Estimate
    log_z_exact: float | None
    num_samples: int
    true_samples: str | None
    phases: tuple[Estimate, ...] = ()
    forbidden: Estimate = NONE_FORBIDDEN
    extra: dict[str, Estimate] = field(default_factory=dict)
    x: Int[Tensor, "n dim"] | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, every figure as {"value": ..., "stderr": ...}."""

        def figure(estimate: Estimate | None) -> dict[str, float] | None:
            return None if estimate is None else {"value": estimate.value, "stderr": estimate.stderr}

        return {
            "elbo": figure(self.elbo),
            "eubo": figure(self.eubo),
            "log_z": figure(self.log_z),
            "ess": figure(self.ess),
            "log_z_exact": self.log_z_exact,
            "phases": [figure(phase) for phase in self.phases],
            "forbidden": figure(self.forbidden),
            "num_samples": self.num_samples,
            "true_samples": self.true_samples,
            **{name: figure(estimate) for name, estimate in self.extra.items()},
        }

    def __str__(self) -> str:
        return scores_text(self.as_dict())


def evaluate(
    sampler: WeightedSampler,
    target: AbstractTarget,
    num_samples: int,
    seed: int,
    truth: TrueSamples | None,
    progress: Progress | None = None,
    *,
    extra: bool = False,
) -> Scores:
    """All scores from `num_samples` trajectories of the model and one per true sample.

    With `extra` also what only this kind of sampler has, from as many more.
    """
    noise = Noise.named(seed, "evaluation", sampler.device)
    x, log_weight = sampler.draw(num_samples, noise, progress)
    eubo = None
    if truth is not None:
        eubo = mean_estimate(sampler.weigh(truth.x.to(noise.device), noise, progress))
    phase = target.phase(x)
    counts = [] if phase is None else torch.bincount(phase, minlength=target.num_phases).tolist()
    return Scores(
        elbo=mean_estimate(log_weight) if bool(log_weight.isfinite().all()) else Estimate(-math.inf, math.inf),
        eubo=eubo,
        log_z=importance_log_z(log_weight),
        ess=effective_sample_size(log_weight),
        log_z_exact=target.log_z_exact,
        num_samples=num_samples,
        true_samples=None if truth is None else truth.source,
        phases=tuple(share(count, num_samples) for count in counts),
        forbidden=share(int(torch.isneginf(log_weight).sum()), num_samples),
        extra=sampler.extra(num_samples, noise, progress) if extra else {},
        x=x.cpu(),
    )
