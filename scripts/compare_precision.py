"""What bf16 loses and gains with bundled weights on the Motorcycle pair, as `aanet predict` runs them.

    python scripts/compare_precision.py [MODEL …]

Predictions in float32 and in bf16 take turns.  Time is that of the processor, summed over the threads, which
other programs on the machine change far less than the time on the clock.
"""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np

from aanet.data.motorcycle import motorcycle
from aanet.matcher import StereoMatcher

PRECISIONS = ("float32", "bf16")
ROUNDS = 3


def compare(model: str) -> str:
    """Return a row of the table."""
    pair = motorcycle()
    matchers = {precision: StereoMatcher(model, precision=precision) for precision in PRECISIONS}

    def predict(precision: str) -> tuple[float, float]:
        start = time.process_time()
        disparity = matchers[precision](pair.left, pair.right, inspect=False).disparity
        seconds = time.process_time() - start
        return float(np.abs(disparity - pair.disparity)[pair.valid].mean()), seconds

    errors = {precision: predict(precision)[0] for precision in PRECISIONS}  # compiles them as well
    rounds = [{precision: predict(precision)[1] for precision in PRECISIONS} for _ in range(ROUNDS)]
    ratio = median(each["bf16"] for each in rounds) / median(each["float32"] for each in rounds)
    return f"| {model} | {errors['float32']:.3f} | {errors['bf16']:.3f} | {ratio:.2f} |"


if __name__ == "__main__":
    print("| network | EPE in float32 | EPE in bf16 | time of bf16 / float32 |\n|---|---|---|---|")
    for name in sys.argv[1:] or ("aanet", "stereonet_aa"):
        print(compare(name), flush=True)
