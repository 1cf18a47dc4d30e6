"""Children of the test process that may be killed."""

import multiprocessing
import os

__all__ = ["exit_status", "forked", "spawned"]


def forked(code) -> int:
    """Run `code` in a copy of this process; the child's id. It exits with 0, or 1 if `code` raised.

    Threads do not survive a fork: code that trains, or computes with more than a few numbers, would wait for those of
    OpenMP for ever. It needs `spawned`.
    """
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


def spawned(function, *arguments) -> multiprocessing.Process:
    """Run a function of a module in a fresh process, which ends with this one at the latest."""
    child = multiprocessing.get_context("spawn").Process(target=function, args=arguments, daemon=True)
    child.start()
    return child
