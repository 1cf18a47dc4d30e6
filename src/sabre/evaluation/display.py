"""How far an evaluation is: a line that is written over on a terminal, a line per stage elsewhere."""

import sys
import time

__all__ = ["StageDisplay"]

_SECONDS_BETWEEN = 0.2


class StageDisplay:
    """Called with the name of a stage and the share of it that is done."""

    def __init__(self) -> None:
        self._stage, self._began, self._shown = "", time.monotonic(), 0.0

    def __call__(self, stage: str, fraction: float) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._began, self._shown = stage, now, 0.0
        seconds = now - self._began
        if sys.stderr.isatty() and (fraction >= 1 or now - self._shown > _SECONDS_BETWEEN):
            self._shown = now
            end = "\n" if fraction >= 1 else ""
            print(f"\r  {stage:<32}{fraction:>5.0%} {seconds:6.1f} s", end=end, file=sys.stderr, flush=True)
        elif fraction >= 1:
            print(f"  {stage:<32}{seconds:6.1f} s", file=sys.stderr, flush=True)
