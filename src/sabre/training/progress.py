"""What a run shows while it goes: a live bar on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["ProgressDisplay"]

_SECONDS_BETWEEN_LINES = 10.0
_FIGURES = ("beta", "loss", "log_z", "elbo", "ess")


class ProgressDisplay:
    """Shows step, loss, log Z, ELBO, ESS and the time that is left; beta while target and log Z are annealed."""

    def __init__(self, num_steps: int, start: int, *, enabled: bool = True, stream: TextIO | None = None) -> None:
        self._num_steps, self._start = num_steps, start
        self._enabled, self._stream = enabled, stream or sys.stderr
        self._began, self._last_line = time.monotonic(), -math.inf
        self._figures: dict[str, Any] = {}
        self._evaluated = False
        self._bar: Progress | None = None

    def __enter__(self) -> "ProgressDisplay":
        if self._enabled and self._stream.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(),
                console=Console(file=self._stream),
            )
            self._task = self._bar.add_task("training", total=self._num_steps, completed=self._start, figures="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def take(self, record: Mapping[str, Any]) -> None:
        """Take in the newest figures. Those of single batches stand in until there is an evaluation."""
        self._evaluated |= record.get("elbo") is not None
        for key in _FIGURES:
            value = record.get(key)
            if value is None and not self._evaluated:
                value = record.get(f"batch_{key}")
            if value is not None:
                self._figures[key] = value

    def show(self, step: int) -> None:
        """Show the figures; on plain streams the first ones, then every ten seconds, and the last ones."""
        if not self._enabled:
            return
        annealed = self._figures.get("beta", 1.0) < 1
        shown = {key: self._figures[key] for key in _FIGURES if key in self._figures and (annealed or key != "beta")}
        text = "  ".join(f"{key} {value:.5g}" for key, value in shown.items())
        if self._bar is not None:
            self._bar.update(self._task, completed=step, figures=text)
            return
        now = time.monotonic()
        if now - self._last_line >= _SECONDS_BETWEEN_LINES or step == self._num_steps:
            self._last_line = now
            rate = (now - self._began) / max(1, step - self._start)
            left = rate * (self._num_steps - step)
            print(f"step {step}/{self._num_steps}  {text}  ETA {_clock(left)}", file=self._stream, flush=True)

    def note(self, message: str) -> None:
        """A line of its own, above the bar."""
        if self._enabled:
            if self._bar is not None:
                self._bar.console.print(message, highlight=False)
            else:
                print(message, file=self._stream, flush=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
