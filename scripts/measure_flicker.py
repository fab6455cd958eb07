"""What the filter along time does to flicker and to moving edges, on a rendered sequence.

    PYTHONPATH=tests python scripts/measure_flicker.py [MODEL …]

A textured square (20 pixels of disparity) moves by 2 pixels per frame in front of a textured plane (8
pixels); the images have noise of 8 gray levels.
"""

from __future__ import annotations

import sys

from aanet.inference.temporal import TemporalFilter
from aanet.matcher import StereoMatcher
from helpers.moving_square import edge_error, flicker, moving_square

FRAMES = 12
WEIGHTS = (0.6, 0.4, 0.2)


def measure(model: str) -> list[str]:
    """Return the rows of the table of one model."""
    moments = moving_square(FRAMES, step=2, noise=8)
    matcher = StereoMatcher(model)
    pairs = [(moment.left, moment.right) for moment in moments]
    maps = [result.disparity for result in matcher.stream(pairs)]
    still = moments[0].still
    rows = [f"| {model} | none | {flicker(maps, still):.3f} | {edge_error(maps, moments):.3f} |"]
    for weight in WEIGHTS:
        average = TemporalFilter(weight)
        smooth = [average(disparity) for disparity in maps]
        rows.append(f"| | {weight} | {flicker(smooth, still):.3f} | {edge_error(smooth, moments):.3f} |")
    return rows


if __name__ == "__main__":
    print("| model | temporal | flicker (px) | error at moving edges (px) |\n|---|---|---|---|")
    for name in sys.argv[1:] or ("aanet", "sgbm"):
        print("\n".join(measure(name)), flush=True)
