"""Stopping a run politely: a signal is noted, and the loop stops at the next safe place."""

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

__all__ = ["StopSignal"]

_PATIENCE = 1.0
"""Seconds within which a second Ctrl-C counts as the same one."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """While active, the first SIGINT or SIGTERM only sets `received`; a second later another SIGINT interrupts at once.

    Handlers belong to the main thread: in any other thread this does nothing.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}
        self._since = 0.0

    def __enter__(self) -> "StopSignal":
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.received is None:
            self.received, self._since = int(number), time.monotonic()
        elif number == signal.SIGINT and time.monotonic() - self._since >= _PATIENCE:
            raise KeyboardInterrupt
