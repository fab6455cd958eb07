"""Peak memory of one prediction, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

from aanet.errors import AanetError

# The child reports what it held before and at most: the difference is the network and its prediction.
_CHILD = """
import json, pathlib, re, resource, sys
import numpy as np, torch
from aanet.engines.factory import open_engine

name, engine, *sizes = sys.argv[1:]
height, width, max_disparity = map(int, sizes)

def peak():
    status = pathlib.Path("/proc/self/status")
    if status.is_file():  # Linux passes ru_maxrss on to a child, so that it may be the parent's
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

before = peak()
images = np.random.default_rng(0).random((2, 1, 3, height, width), dtype=np.float32)
open_engine(name, weights="random", engine=engine, max_disparity=max_disparity)(*images)
print(json.dumps({"before": before, "peak": peak()}))
"""


def peak_memory(name: str, size: tuple[int, int], max_disparity: int = 192, engine: str = "torch") -> int:
    """Return the bytes that opening a network and one prediction need at their worst, beyond the libraries.

    Raises:
        AanetError: If the process died, most likely because the machine has too little memory.
    """
    sizes = [str(value) for value in (*size, max_disparity)]
    command = [sys.executable, "-c", _CHILD, name, engine, *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["killed, most likely for want of memory"]
        raise AanetError(f"Measuring the memory of {name} failed: {reason[0]}.")
    figures = json.loads(done.stdout)
    return int(figures["peak"]) - int(figures["before"])
