"""Everything that a run consists of at one moment, as it goes into a checkpoint and comes back from it."""

import math
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sabre.device import pick_device
from sabre.errors import CheckpointError
from sabre.memory import keep_freed_memory
from sabre.noise import Noise
from sabre.objectives import OBJECTIVES, WEIGHTED
from sabre.options import Options
from sabre.storage import Checkpoint
from sabre.targets import AbstractTarget, CheckedTarget
from sabre.training.algorithm import StepOutcome, algorithm_1, prefill
from sabre.training.annealing import inverse_temperature, learning_rate_factor
from sabre.training.builder import build_plan, build_sampler
from sabre.training.fingerprint import fingerprint, require_same
from sabre.training.learner import Learner, annealed
from sabre.training.replay import priority_of

__all__ = ["TrainingState"]

_SEARCHES = 512
"""Batches of random states among which an allowed one is looked for."""
_STREAMS = ("rollout", "path", "replay", "mcmc", "drop")


class TrainingState:
    """Network, optimiser, buffers, random streams, counters."""

    def __init__(self, target: AbstractTarget, options: Options, net: nn.Module | None = None) -> None:
        keep_freed_memory()
        self.target, self.options = target, options
        self.device = pick_device(options.device)
        self.checked = CheckedTarget(target)
        self.sampler = build_sampler(target, options, self.device, net)
        self.noises = {name: Noise.named(options.seed, name, self.device) for name in _STREAMS}
        plan = build_plan(target, options)
        self.experience = self.sampler.experience(plan, self.checked, self.noises)
        self.learner = self._make_learner()
        self.step = 0
        self.seconds = 0.0
        self.mean_log_density = 0.0
        self.has_begun = False
        self.fingerprint: dict[str, Any] = {}
        self.sessions: list[dict[str, Any]] = []
        """The processes that have trained, the newest last: see `provenance`."""

    @property
    def is_finished(self) -> bool:
        return self.step >= self.options.steps

    @property
    def beta(self) -> float:
        """The exponent of the target at the current step."""
        return self._beta_at(self.step)

    @property
    def num_evaluations(self) -> int:
        """Log densities evaluated so far, by rollouts and MCMC."""
        return self.checked.num_evaluations

    def begin(self) -> None:
        """What comes before the first step: the first of the buffer, and a check that the target allows anything."""
        x = self.noises["rollout"].integers(self.target.num_categories, (self.options.batch_size, self.target.dim))
        prefill(self.experience, beta=self.beta)
        if not self.checked.has_seen_allowed:
            self._search(x)
        self.checked.check_support(x)
        self.fingerprint = fingerprint(CheckedTarget(self.target), self.device)
        if self.options.log_z_init is None and self.beta > 0 and self.options.objective != "leaps":
            self._estimate_log_z()
        self.has_begun = True

    def advance(self) -> StepOutcome:
        """One step of Algorithm 1."""
        options = self.options
        rate = learning_rate_factor(self.step, options.steps, options.decay)
        outcome = algorithm_1(
            self.step, self.experience, self.learner, beta=self.beta, rate=rate, noise=self.noises["drop"]
        )
        self._carry_log_z(outcome)
        self.step += 1
        return outcome

    def _search(self, x: Int[Tensor, "batch dim"]) -> None:
        """Look for allowed states among uniform ones, and give them to the buffer as the first to learn from.

        Under the uniform law the log-weight is beta log density + d log C.
        """
        constant = self.target.dim * math.log(self.target.num_categories)
        for _ in range(_SEARCHES):
            log_density = self.checked.log_density(x).double()
            allowed = log_density > -math.inf
            if bool(allowed.any()):
                found = log_density[allowed]
                log_weight = annealed(self.beta, found) + constant
                self.experience.buffer.add(x[allowed], found, priority_of(self.options.priority, found, log_weight))
                return
            x = self.noises["rollout"].integers(self.target.num_categories, x.shape)

    @torch.no_grad()
    def _estimate_log_z(self) -> None:
        """Where no annealing leads log Z from its value at beta = 0: the mean log-weight of a first batch."""
        batch = self.experience.sample_on_policy()
        assert batch.log_pf is not None
        log_weight = self.beta * batch.log_density - batch.log_pf
        allowed = log_weight[log_weight.isfinite()]
        if len(allowed):
            self.learner.shift_log_z(float(allowed.mean()) - float(self.learner.log_z.detach()))

    def _carry_log_z(self, outcome: StepOutcome) -> None:
        """d log Z / d beta = E_beta[log density]: move log Z along with the annealed target.

        The expectation is that over the last on-policy batch.
        """
        if outcome.batch.log_pf is not None:
            allowed = outcome.batch.log_density[outcome.batch.log_density.isfinite()]
            self.mean_log_density = float(allowed.mean()) if len(allowed) else 0.0
        if self.options.carry_log_z:
            self.learner.shift_log_z((self._beta_at(self.step + 1) - self.beta) * self.mean_log_density)

    def _beta_at(self, step: int) -> float:
        if self.options.objective == "leaps":
            return 1.0  # time is its annealing
        return inverse_temperature(step, self.options.steps, self.options.anneal, self.options.warm_up)

    def checkpoint(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """(tensors by group, plain values)."""
        model, optimiser = self.learner.state_tensors()
        tensors = {
            "model": model,
            "optimiser": optimiser,
            "noise": {name: noise.state for name, noise in self.noises.items()},
            **self.experience.state_tensors(),
        }
        if self.sampler.averages is not None:
            tensors["averages"] = self.sampler.averages.state_tensors()
        return tensors, {
            "num_evaluations": self.num_evaluations,
            "seconds": self.seconds,
            "mean_log_density": self.mean_log_density,
            "target": self.fingerprint,
            "sessions": self.sessions,
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint; from there everything happens again bit for bit."""
        tensors = checkpoint.tensors
        try:
            self.fingerprint = checkpoint.state["target"]
            require_same(self.target, self.fingerprint, self.device)
            self.learner.load_state_tensors(tensors["model"], tensors["optimiser"])
            self.experience.load_state_tensors(tensors)
            if self.sampler.averages is not None:
                self.sampler.averages.load_state_tensors(tensors["averages"])
            for name, noise in self.noises.items():
                noise.state = tensors["noise"][name]
            self.step, self.has_begun = checkpoint.step, True
            self.seconds = float(checkpoint.state["seconds"])
            self.mean_log_density = float(checkpoint.state["mean_log_density"])
            self.sessions = list(checkpoint.state["sessions"])
            self.checked.num_evaluations = int(checkpoint.state["num_evaluations"])
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(
                f"the checkpoint of step {checkpoint.step} does not fit the options of this run ({error}); "
                "restore the run's config.yaml"
            ) from error

    def _make_learner(self) -> Learner:
        options = self.options
        log_z = options.log_z_init
        if log_z is None:
            log_z = self.target.dim * math.log(self.target.num_categories)
        return Learner(
            self.sampler.network,
            OBJECTIVES[options.objective],
            log_z=log_z,
            learning_rate=options.learning_rate,
            log_z_learning_rate=options.log_z_learning_rate,
            weight_decay=options.weight_decay,
            grad_clip=options.grad_clip,
            drop=options.drop,
            is_weighted=options.objective in WEIGHTED,
            replicates=options.replicates if options.objective == "wdce" else 0,
            averages=self.sampler.averages,
        )
