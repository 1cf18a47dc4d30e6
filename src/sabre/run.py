"""A trained (or half-trained) sampler: evaluate it, draw from it, report on it."""

import sys
from pathlib import Path
from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from sabre.errors import RunDirectoryError
from sabre.evaluation import Scores, WeightedSampler, cautions, compare_with_truth, evaluate, true_samples
from sabre.metrics import Progress
from sabre.noise import Noise
from sabre.options import Options
from sabre.report import ReportData, render_report
from sabre.storage import RunDirectory, latest_checkpoint, provenance
from sabre.targets import AbstractTarget, make_target
from sabre.targets.arguments import require_int
from sabre.training import TrainingState, make_schedule

__all__ = ["Run", "holds_checkpoint", "load", "open_state"]

_PICTURES = 64
_POINTS = 2000


class Run:
    """What `train` and `load` return. `records` are the metrics of the training, one dict per line."""

    def __init__(self, state: TrainingState, directory: RunDirectory | None, records: list[dict[str, Any]]) -> None:
        self.target = state.target
        self.options = state.options
        self.records = records
        self._state, self._directory = state, directory
        self._results: dict[str, Any] = {}

    def __repr__(self) -> str:
        where = "" if self._directory is None else f", run_dir={str(self._directory.path)!r}"
        return f"Run({self.target!r}, {self.options.method!r}, step {self.step} of {self.options.steps}{where})"

    @property
    def step(self) -> int:
        return self._state.step

    @property
    def finished(self) -> bool:
        """Whether all steps have been made (a time limit or a signal may have ended the run before)."""
        return self._state.is_finished

    @property
    def network(self) -> nn.Module:
        """The trained network, with averaged weights if the run keeps them."""
        network = self._state.sampler.drawing
        assert isinstance(network, nn.Module)
        return network

    @property
    def log_z(self) -> float:
        """The learnt log Z of trajectory balance."""
        return float(self._state.learner.log_z.detach())

    @property
    def num_evaluations(self) -> int:
        """How often training has evaluated the log density."""
        return self._state.num_evaluations

    def evaluate(
        self,
        num_samples: int = 4096,
        seed: int | None = None,
        schedule: str | None = None,
        *,
        metrics: bool = False,
        progress: Progress | None = None,
    ) -> Scores:
        """ELBO, EUBO, log Z and ESS, beside the exact log Z; kept in results.json if there is a run directory.

        `schedule` ("1", "4", "1-8": tokens per step) takes the place of the option `eval_schedule`. With `metrics` the
        samples are also compared with true ones: exact transport, Sinkhorn, MMD, lattice observables and energies,
        each with its error and the floor that true samples reach; they are in `results["metrics"]`. `progress` is
        called with the name of a stage and the share of it that is done.
        """
        require_int("evaluate", "num_samples", num_samples, low=2)
        seed = self.options.seed + 2 if seed is None else seed
        state = self._state
        truth = true_samples(self.target, num_samples, seed, progress)
        scores = evaluate(self._sampler(schedule), self.target, num_samples, seed, truth, progress, extra=True)
        assert scores.x is not None
        compared = compare_with_truth(self.target, scores.x, progress) if metrics else None
        self._results = scores.as_dict() | {
            "metrics": compared or {},
            "target": repr(self.target),
            "method": self.options.method,
            "net": self.options.net,
            "step": state.step,
            "steps": self.options.steps,
            "provenance": self._provenance(),
            "evaluated": {"seed": seed, "schedule": schedule or self.options.eval_schedule} | provenance(sys.argv),
        }
        if self._directory is not None:
            self._directory.write_results(self._results)
        return scores

    def _provenance(self) -> dict[str, Any]:
        """Of the training: the newest of the processes that had a part in it, and their common cost."""
        *before, newest = self._state.sessions
        cost = {"wall_clock_s": self._state.seconds, "num_evaluations": self._state.num_evaluations}
        kept = ("from_step", "command", "commit", "date")
        parts = [{key: part[key] for key in kept} for part in before]
        return {"seed": self.options.seed} | newest | cost | {"resumed_from": parts}

    @property
    def results(self) -> dict[str, Any]:
        """What results.json holds: the newest evaluation with its provenance."""
        if not self._results and self._directory is not None and self._directory.results_path.exists():
            self._results = self._directory.read_results()
        return self._results

    def sample(self, n: int, seed: int = 0, schedule: str | None = None) -> Int[Tensor, "n dim"]:
        """n states drawn from the model, on the CPU."""
        return self.sample_with_log_weights(n, seed, schedule)[0]

    def sample_with_log_weights(self, n: int, seed: int = 0, schedule: str | None = None) -> tuple[Tensor, Tensor]:
        """n states drawn from the model and the log importance weights of their trajectories, on the CPU."""
        require_int("sample", "n", n, low=1)
        state = self._state
        noise = Noise.named(seed, "sample", state.device)
        x, log_weight = self._sampler(schedule).draw(n, noise)
        return x.cpu(), log_weight.cpu()

    def _sampler(self, schedule: str | None) -> WeightedSampler:
        chosen = None if schedule is None else make_schedule("schedule", schedule)
        return self._state.sampler.weighted(self.target, chosen)

    def report(self) -> str:
        """The report of the run as one self-contained HTML page, written to report.html if there is a directory."""
        if not self.results:
            self.evaluate()
        x = self.sample(_POINTS, seed=self.options.seed)
        truth = true_samples(self.target, _POINTS, self.options.seed + 3)
        page = render_report(_report_data(self, x, None if truth is None else truth.x))
        if self._directory is not None:
            self._directory.write_report(page)
        return page


def _report_data(run: Run, x: Tensor, true_x: Tensor | None) -> ReportData:
    target = run.target
    decoded = target.decode(x)
    true_decoded = None if decoded is None or true_x is None else target.decode(true_x)
    is_picture = target.layout.kind == "torus"
    return ReportData(
        title=f"{target!r}: {run.options.method}, {run.options.net}",
        target=repr(target),
        method=run.options.method,
        net=run.options.net,
        finished=run.finished,
        metrics=run.records,
        log_z_exact=target.log_z_exact,
        results=run.results,
        samples=x[:_PICTURES] if is_picture else x,
        true_samples=None if true_x is None else true_x[:_PICTURES] if is_picture else true_x,
        layout=target.layout,
        num_categories=target.num_categories,
        decoded=decoded,
        true_decoded=true_decoded,
        config=run.options.as_dict(),
        cautions=cautions((run.results.get("ess") or {}).get("value")),
    )


def load(
    run_dir: str | Path,
    *,
    target: AbstractTarget | None = None,
    net: nn.Module | None = None,
    device: str = "auto",
) -> Run:
    """The newest state of a run, on any device.

    `target` is needed only for functions that cannot be imported by name, `net` only for networks of your own.
    """
    directory = RunDirectory(run_dir)
    _require_run(directory)
    if not holds_checkpoint(directory):
        raise RunDirectoryError(
            f"the run in {directory.path} has no checkpoint yet; wait for its first one, or train it again"
        )
    state = open_state(directory, target=target, net=net, device=device)
    return Run(state, directory, directory.read_metrics())


def holds_checkpoint(directory: RunDirectory) -> bool:
    """Whether a run has got as far as its first checkpoint; before that there is nothing to lose."""
    return any(directory.checkpoints.glob("step-*"))


def _require_run(directory: RunDirectory) -> None:
    if not directory.exists():
        raise RunDirectoryError(f"{directory.path} holds no run (it has no config.yaml); check the path")
    if directory.read_config().keys() != {"target", "options"}:
        raise RunDirectoryError(f"{directory.config_path} is not that of a run (target, options); check the path")


def open_state(
    directory: RunDirectory,
    *,
    target: AbstractTarget | None,
    net: nn.Module | None,
    device: str | None,
    going_on: bool = False,
) -> TrainingState:
    """The run in a directory, restored from its newest checkpoint that can be trusted; `going_on` to train further."""
    _require_run(directory)
    config = directory.read_config()
    options = Options().replace(config["options"] | ({} if device is None else {"device": device}))
    if target is None:
        if config["target"] is None:
            raise RunDirectoryError(
                f"the target of {directory.path} is a function that cannot be imported by name; "
                "pass it again, as in sabre.load(run_dir, target=...)"
            )
        target = make_target(config["target"])
    if options.net == "custom" and net is None:
        raise RunDirectoryError(f"{directory.path} was trained with a network of your own; pass it again as net=...")
    state = TrainingState(target, options, net)
    checkpoint = latest_checkpoint(directory.checkpoints, _warn, set_aside=going_on)
    if checkpoint is not None:
        state.restore(checkpoint)
    return state


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)
