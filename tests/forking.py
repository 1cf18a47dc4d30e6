"""Children of the test process that may be killed."""

import os

__all__ = ["exit_status", "forked"]


def forked(code) -> int:
    """Run `code` in a child process; the child's id. It exits with 0, or 1 if `code` raised."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        code()
        status = 0
    finally:
        os._exit(status)


def exit_status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
