"""How right the uncertainty of depths is, and what the removal of flying pixels does, on the Motorcycle pair.

python scripts/measure_lengths.py [MODEL …]
"""

from __future__ import annotations

import sys

import numpy as np

from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
from aanet.geometry.measurement import disparity_noise
from aanet.inference.flying_pixels import flying_pixels
from aanet.matcher import StereoMatcher

PIXELS = 4000
WRONG = 3.0  # pixels


def measure(model: str) -> str:
    """Return a row of the table."""
    pair = motorcycle()
    result = StereoMatcher(model)(pair.left, pair.right, calibration=MOTORCYCLE_CAMERA)
    error = np.abs(result.disparity - pair.disparity)
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(pair.valid)
    chosen = rng.choice(rows.size, PIXELS, replace=False)
    deviations = np.array(
        [
            error[y, x] / disparity_noise(result.disparity, result.confidence, x, y)
            for y, x in zip(rows[chosen], columns[chosen], strict=True)
        ]
    )
    within = [f"{100 * np.mean(deviations < limit):.0f} %" for limit in (1, 2)]
    flying = flying_pixels(result.disparity)
    wrong = error > WRONG
    parts = [
        f"{100 * flying.mean():.1f} %",
        f"{100 * np.mean(wrong[flying & pair.valid]):.0f} %",
        f"{100 * np.mean(wrong[pair.valid]):.1f} %",
    ]
    return f"| {model} | {' | '.join(within + parts)} |"


if __name__ == "__main__":
    print(
        "| model | within σ | within 2σ | flying | of these wrong | of all wrong |\n|---|---|---|---|---|---|"
    )
    for name in sys.argv[1:] or ("aanet", "sgbm"):
        print(measure(name), flush=True)
