"""Peak memory of one prediction, measured in a separate process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import psutil

from aanet.errors import AanetError

_STATUS = Path("/proc/self/status")
# Prints the peak memory of the process before and after a prediction; the difference is that of the network.
_CHILD = """
import json, sys
import numpy as np, torch
from aanet.benchmark.memory import peak_of_this_process
from aanet.engines.factory import open_engine

arguments = json.loads(sys.argv[1])
size = arguments.pop("size")
before = peak_of_this_process()
images = np.random.default_rng(0).random((2, 1, 3, *size), dtype=np.float32)
open_engine(**arguments)(*images)
print(json.dumps({"before": before, "peak": peak_of_this_process()}))
"""


def peak_memory(
    model: str,
    size: tuple[int, int],
    max_disparity: int | None = 192,
    engine: str | None = "torch",
    weights: str | None = "random",
    network_spec: str | None = None,
) -> int:
    """Return the bytes that opening a model and one prediction need at their peak, beyond the libraries.

    Args:
        model: A network of the zoo, a weight file, a network file, or "sgbm".
        size: Height and width of the images.
        max_disparity: Pixels to search; None if the file fixes them.
        engine: The engine that computes; None for "sgbm" and network files.
        weights: None for all but a network of the zoo.
        network_spec: How to feed a file of another program.

    Raises:
        AanetError: If the process died, most likely because the machine has too little memory.
    """
    arguments = {
        "model": model,
        "weights": weights,
        "engine": engine,
        "max_disparity": max_disparity,
        "network_spec": network_spec,
        "size": size,
    }
    command = [sys.executable, "-c", _CHILD, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["the process was killed, probably out of memory"]
        raise AanetError(f"Measuring the memory of {model} failed: {reason[0]}.")
    figures = json.loads(done.stdout)
    return int(figures["peak"]) - int(figures["before"])


def peak_of_this_process() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    if _STATUS.is_file():  # on Linux, ru_maxrss of a child begins with that of its parent
        found = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
        if found:
            return int(found[1]) * 1024
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource  # which Windows does not have

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
