"""Durations as people write them."""

import re

from sabre.errors import InvalidArgumentError

__all__ = ["parse_duration"]

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhd]?)", re.ASCII)


def parse_duration(text: str) -> float:
    """Seconds of "600", "90s", "10m", "1.5h" or "2d"."""
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        raise InvalidArgumentError(f"duration {text!r} is not understood; write a positive one like 90s, 10m or 1.5h")
    return seconds
