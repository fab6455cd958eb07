"""Settings of the C memory allocator."""

from __future__ import annotations

import contextlib
import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from malloc.h
_LARGEST = 1 << 30  # bytes


def keep_freed_memory() -> None:
    """Let the allocator keep freed memory instead of returning it to the system (glibc only).

    Otherwise large buffers are returned at once, and the pages of the next one are zeroed again, which
    takes a fifth of the rendering time and a twelfth of a training step.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
        mallopt(_M_TRIM_THRESHOLD, _LARGEST)
