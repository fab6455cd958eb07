"""How much memory a prediction may use."""

from __future__ import annotations

import re
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes of main memory left for this process: what the system has free, within a container's limit."""
    free = int(psutil.virtual_memory().available)
    left = _left_of_limit()
    return free if left is None else min(free, left)


def _left_of_limit() -> int | None:
    """Bytes left of the limit of the control group, which psutil does not know; None without a limit."""
    try:
        limit, used, details = (
            (_CGROUP / f"memory.{name}").read_text().strip() for name in ("max", "current", "stat")
        )
    except OSError:
        return None
    if not limit.isdigit():  # "max"
        return None
    # The kernel drops cached files before a group reaches its limit.
    cached = re.search(r"^inactive_file (\d+)$", details, re.MULTILINE)
    return max(int(limit) - int(used) + (int(cached[1]) if cached else 0), 0)
