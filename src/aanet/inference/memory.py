"""How much memory a prediction may use."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes of main memory that are free for this process now, as far as the system tells."""
    if _MEMINFO.is_file():
        found = re.search(r"^MemAvailable:\s+(\d+) kB", _MEMINFO.read_text(), re.MULTILINE)
        if found:
            return min(int(found[1]) * 1024, _container_memory())
    if sys.platform == "win32":
        return _windows_memory()
    # macOS does not say what is free; half of what is built in is a safe guess.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _container_memory() -> int:
    """What is left of a container's limit; a very large number without one."""
    try:
        limit, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return sys.maxsize
    return int(limit) - int(used) if limit.isdigit() else sys.maxsize


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = [
        ("length", ctypes.c_ulong),
        ("load", ctypes.c_ulong),
        *((name, ctypes.c_ulonglong) for name in ("total", "available", "a", "b", "c", "d", "e")),
    ]


def _windows_memory() -> int:
    status = _MemoryStatus()
    status.length = ctypes.sizeof(status)
    getattr(ctypes, "windll").kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # noqa: B009 - absent elsewhere
    return int(status.available)
