"""Peak memory of one prediction, measured in a separate process."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from aanet.errors import AanetError

_STATUS = Path("/proc/self/status")
# Prints the peak memory of the process before and after a prediction; the difference is that of the network.
_CHILD = """
import json, pathlib, re, sys
import numpy as np, torch
from aanet.engines.factory import open_engine

arguments = json.loads(sys.argv[1])
size = arguments.pop("size")

def peak():
    status = pathlib.Path("/proc/self/status")
    if status.is_file():  # on Linux, ru_maxrss of a child begins with that of its parent
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) * 1024
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

before = peak()
images = np.random.default_rng(0).random((2, 1, 3, *size), dtype=np.float32)
open_engine(**arguments)(*images)
print(json.dumps({"before": before, "peak": peak()}))
"""


def is_measurable() -> bool:
    """Whether the system tells the peak memory of a process; Windows does not tell it to Python."""
    return _STATUS.is_file() or importlib.util.find_spec("resource") is not None


def peak_memory(
    model: str,
    size: tuple[int, int],
    max_disparity: int = 192,
    engine: str | None = "torch",
    weights: str | None = "random",
) -> int | None:
    """Return the bytes that opening a model and one prediction need at their peak, beyond the libraries.

    Args:
        model: A network of the zoo, a weight file, or "sgbm".
        size: Height and width of the images.
        max_disparity: Pixels to search.
        engine: What computes; None for "sgbm".
        weights: None for a weight file and for "sgbm".

    Returns:
        None if the system does not tell it.

    Raises:
        AanetError: If the process died, most likely because the machine has too little memory.
    """
    if not is_measurable():
        return None
    arguments = {
        "model": model,
        "weights": weights,
        "engine": engine,
        "max_disparity": max_disparity,
        "size": size,
    }
    command = [sys.executable, "-c", _CHILD, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["the process was killed, probably out of memory"]
        raise AanetError(f"Measuring the memory of {model} failed: {reason[0]}.")
    figures = json.loads(done.stdout)
    return int(figures["peak"]) - int(figures["before"])
