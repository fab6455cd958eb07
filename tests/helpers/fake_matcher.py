"""A child process of the server whose engine misbehaves as the gray value of the left image says."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

from aanet.io.images import encode_image
from aanet.matcher import StereoMatcher
from aanet.web import child
from helpers.fake_engine import Array, FakeEngine

FINE, SLEEP, KILL, FAULT, ALLOCATE, RAISE, PRINT, FORK = range(10, 90, 10)
MEMORY_LIMIT = 1 << 30  # bytes


def use() -> None:
    """Let the servers of this process have such children."""
    tests = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    run = "from helpers.fake_matcher import serve; serve()"
    child.child_command = lambda: [sys.executable, "-c", f"import sys; sys.path.insert(0, {tests!r}); {run}"]


def serve() -> None:
    """Run as a child process."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    child.serve(_open)


def pair(action: int) -> dict[str, bytes]:
    """A pair that makes the engine do something."""
    image = encode_image(np.full((48, 96), action, np.uint8), ".png")
    return {"left": image, "right": image}


def _open(model: str, *, max_disparity: int | None = None) -> StereoMatcher:
    del model, max_disparity
    return FakeEngine(_disparity).matcher


def _disparity(left: Array) -> Array:
    action = round(float(left[0, 0, 0, 0]) * 255)
    if action == SLEEP:
        time.sleep(1e6)
    elif action in (KILL, FAULT):
        os.kill(os.getpid(), signal.SIGKILL if action == KILL else signal.SIGSEGV)
    elif action == ALLOCATE:
        np.ones(2 * MEMORY_LIMIT, np.uint8)
    elif action == RAISE:
        raise ZeroDivisionError
    elif action == PRINT:
        print("noise", flush=True)
    elif action == FORK:
        forked = os.fork()
        if not forked:
            sys.exit()
        if os.waitpid(forked, 0)[1]:
            raise ChildProcessError
    return np.full_like(left[:, 0], 5)
