"""Draw the picture at the top of README.md: the left image of the sample pair, its depth and its points.

python scripts/readme_picture.py [FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2

import aanet
from aanet import viz
from aanet.io.images import write_image

FILE = Path(__file__).resolve().parents[1] / "docs" / "images" / "first.jpg"
WIDTH = 1600  # pixels of the picture: twice the width of a README's column


def main() -> None:
    """The command line."""
    left, right, calibration = aanet.sample_pair()
    result = aanet.StereoMatcher()(left, right, calibration=calibration)
    height, width = left.shape[:2]
    depth = result.depth()
    colored = viz.with_scale_bar(viz.colorize_depth(depth), *viz.value_range(depth), "m")
    points = viz.render_points(result.points(), left, width, height)
    titles = ["left image", "depth", "point cloud"]
    picture = viz.panel([left, colored, points], titles, columns=3)
    size = (WIDTH, round(picture.shape[0] * WIDTH / picture.shape[1]))
    write_image(
        sys.argv[1] if sys.argv[1:] else FILE, cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    )


if __name__ == "__main__":
    main()
