"""The training loop: Algorithm 1 again and again, with records, evaluations, checkpoints and a polite end."""

import math
import time
from collections.abc import Callable
from typing import Any

import torch

from sabre.errors import NonFiniteError, TargetError
from sabre.evaluation import TrueSamples, effective_sample_size, evaluate, true_samples
from sabre.storage import RunDirectory, StopSignal, save_checkpoint
from sabre.training.algorithm import StepOutcome
from sabre.training.learner import Trajectories
from sabre.training.progress import ProgressDisplay
from sabre.training.state import TrainingState

__all__ = ["TrainingLoop"]


class TrainingLoop:
    """Runs a `TrainingState` to its end, or until a signal or the time limit stops it."""

    def __init__(self, state: TrainingState, directory: RunDirectory | None, display: ProgressDisplay) -> None:
        self.state, self.directory, self.display = state, directory, display
        self.records: list[dict[str, Any]] = [] if directory is None else directory.read_metrics()
        self._truth: TrueSamples | None = None
        self._saved_step = state.step if state.step else -1
        self._saved_at = 0.0
        self._on_policy: Trajectories | None = None

    def run(self, time_limit: float | None) -> int | None:
        """Train; returns the number of the signal that ended it early, if one did."""
        state, deadline = self.state, _Deadline(time_limit)
        began, before = time.monotonic(), state.seconds
        self._saved_at = began
        if not state.has_begun:
            state.begin()
        with StopSignal() as stop:
            while not state.is_finished and stop.received is None and not deadline.has_passed():
                outcome = self._advance()
                now = time.monotonic()
                state.seconds = before + now - began
                self._after_step(outcome, now)
            self.save()
            return stop.received

    def save(self) -> None:
        """Write a checkpoint, unless this step has one."""
        if self.directory is not None and self.state.step != self._saved_step:
            self.directory.sync_metrics()
            tensors, values = self.state.checkpoint()
            save_checkpoint(self.directory.checkpoints, self.state.step, tensors, values)
            self._saved_step = self.state.step

    def _advance(self) -> StepOutcome:
        try:
            return self.state.advance()
        except (NonFiniteError, TargetError) as error:
            kept = f"; the run is kept as it was after step {self._saved_step}" if self._saved_step > 0 else ""
            raise type(error)(f"step {self.state.step + 1}: {error}{kept}") from error

    def _after_step(self, outcome: StepOutcome, now: float) -> None:
        state, options = self.state, self.state.options
        is_last = state.is_finished
        records = []
        if is_last or state.step % options.log_interval == 0:
            records.append(_training_record(state, outcome))
        if options.eval_interval and (is_last or state.step % options.eval_interval == 0):
            records.append(self._evaluation_record())
        for record in records:
            self._record(record)
        if outcome.batch.log_pf is not None:
            self._on_policy = outcome.batch._replace(log_pf=outcome.batch.log_pf.detach())
        if records:
            self.display.take({} if self._on_policy is None else _batch_figures(self._on_policy))
            self.display.show(state.step)
        if state.step % options.checkpoint_interval == 0 or now - self._saved_at >= 60 * options.checkpoint_minutes:
            self.save()
            self._saved_at = now

    def _record(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if self.directory is not None:
            self.directory.append_metrics(record)
        self.display.take(record)

    def _evaluation_record(self) -> dict[str, Any]:
        state, options = self.state, self.state.options
        if self._truth is None:
            self._truth = true_samples(state.target, options.eval_samples, options.seed + 1)
        sampler = state.sampler.weighted(state.target)
        scores = evaluate(sampler, state.target, options.eval_samples, options.seed + 1, self._truth)
        figures = {"elbo": scores.elbo, "eubo": scores.eubo, "log_z_estimate": scores.log_z, "ess": scores.ess}
        return {"step": state.step} | {key: None if f is None else f.value for key, f in figures.items()}


def _training_record(state: TrainingState, outcome: StepOutcome) -> dict[str, Any]:
    """The figures of one step; of on-policy batches also what they say about log Z at the full target."""
    record: dict[str, Any] = {
        "step": state.step,
        "loss": outcome.update.loss,
        "grad_norm": outcome.update.grad_norm,
        "beta": state.beta,
        "num_evaluations": state.num_evaluations,
    }
    if state.options.objective == "tb":
        record["log_z"] = float(state.learner.log_z.detach())
    if outcome.batch.log_pf is not None:
        record |= _batch_figures(outcome.batch)
        if state.options.objective != "tb":
            log_weight = outcome.batch.log_density - outcome.batch.log_pf.detach()
            record["log_z"] = float(torch.logsumexp(log_weight, 0)) - math.log(len(log_weight))
    return record


def _batch_figures(batch: Trajectories) -> dict[str, float]:
    """What an on-policy batch says about the full target."""
    assert batch.log_pf is not None
    log_weight = batch.log_density - batch.log_pf.detach()
    return {"batch_elbo": float(log_weight.mean()), "batch_ess": effective_sample_size(log_weight).value}


class _Deadline:
    """A moment after which no new step is begun."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def has_passed(self) -> bool:
        return self._end is not None and self._clock() >= self._end
