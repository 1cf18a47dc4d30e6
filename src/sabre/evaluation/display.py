"""How far an evaluation is: a line that is written over on a terminal, a line per finished stage elsewhere."""

import sys
import time

__all__ = ["StageDisplay"]

_SECONDS_BETWEEN = 0.2


class StageDisplay:
    """Called with the name of a stage and the share that is done; a stage ends where the next begins, or at 1."""

    def __init__(self) -> None:
        self._stage, self._began, self._shown = "", time.monotonic(), 0.0

    def __call__(self, stage: str, share: float) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self._finish(now)
            self._stage, self._began, self._shown = stage, now, 0.0
        if share >= 1:
            self._finish(now)
        elif sys.stderr.isatty() and now - self._shown > _SECONDS_BETWEEN:
            self._shown = now
            print(f"\r  {stage:<32}{share:>5.0%} {now - self._began:6.1f} s", end="", file=sys.stderr, flush=True)

    def _finish(self, now: float) -> None:
        """The last line of a stage, with its time."""
        if self._stage:
            start = "\r" if sys.stderr.isatty() else ""
            print(f"{start}  {self._stage:<38}{now - self._began:6.1f} s", file=sys.stderr, flush=True)
        self._stage = ""
