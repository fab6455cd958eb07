"""Peak memory of one prediction, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

from aanet.errors import AanetError

# The child reports what it held before and at most: the difference is the network and its prediction.
_CHILD = """
import json, resource, sys, torch
from aanet.benchmark.baseline import random_pair
from aanet.models import zoo

name, height, width, max_disparity = sys.argv[1], *map(int, sys.argv[2:])
unit = 1 if sys.platform == "darwin" else 1024

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

before = peak()
network = zoo.build(name, max_disparity).eval()
with torch.inference_mode():
    network(*random_pair((height, width)))
print(json.dumps({"before": before, "peak": peak()}))
"""


def peak_memory(name: str, size: tuple[int, int], max_disparity: int = 192) -> int:
    """Return the bytes that one eager prediction needs at its worst, beyond the interpreter and PyTorch.

    Raises:
        AanetError: If the process died, most likely because the machine has too little memory.
    """
    command = [sys.executable, "-c", _CHILD, name, *(str(value) for value in (*size, max_disparity))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["killed, most likely for want of memory"]
        raise AanetError(f"Measuring the memory of {name} failed: {reason[0]}.")
    figures = json.loads(done.stdout)
    return int(figures["peak"]) - int(figures["before"])
