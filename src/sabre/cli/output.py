"""What commands print: scores for people, JSON for programs."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from sabre.storage.files import strict_json

__all__ = ["clean_stdout", "print_json"]


@contextlib.contextmanager
def clean_stdout() -> Iterator[None]:
    """Whatever is printed inside, by a user's function for example, goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def print_json(value: Mapping[str, Any]) -> None:
    """One strict JSON object; numbers that are not finite become null."""
    print(strict_json(dict(value), indent=2))
