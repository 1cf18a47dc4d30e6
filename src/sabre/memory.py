"""Keep freed memory in the process: a training step allocates the same large tensors again and again."""

import ctypes
import functools
import sys

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


@functools.cache
def keep_freed_memory() -> bool:
    """Ask the allocator of the C library not to return freed blocks to the system; True if it agreed.

    Without this, glibc maps each tensor of some megabytes anew, and the kernel clears it page by page when it is
    first touched, which can cost more than the arithmetic on it. The peak of the memory in use stays what it is.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    wishes = ((_MMAP_THRESHOLD, 1 << 30), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 1 << 26))
    granted = [mallopt(key, value) == 1 for key, value in wishes]  # all of them, whatever the first one answers
    return all(granted)
