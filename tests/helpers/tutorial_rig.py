"""What docs/tutorials/own-camera.md photographs: a board, and a poster of known width on a wall."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from aanet.data.motorcycle import motorcycle
from aanet.io.images import write_image
from helpers.rendered_rig import Image, photographed_chessboard, turned

POSTER_M = 0.7  # width of the poster
_TEXELS_PER_M = 1000
_POSTER_CORNER = (700, 640)  # in texels of the wall


def photograph(folder: Path) -> None:
    """Write photographs of the board (`left/`, `right/`) and of the poster (`scene-left.png`, …)."""
    rig, _, pairs = photographed_chessboard(16)
    for index, pair in enumerate(pairs):
        for side, image in zip(("left", "right"), pair, strict=True):
            write_image(folder / side / f"{index:02d}.png", image)
    rotation, corner = turned(4, 12, 0), np.array([-1.05, -0.87, 1.05])
    for side, image in zip(
        ("left", "right"), rig.photograph(_wall(), _TEXELS_PER_M, rotation, corner), strict=True
    ):
        write_image(folder / f"scene-{side}.png", image)


def _wall() -> Image:
    """A rough wall with the poster."""
    rng = np.random.default_rng(1)
    coarse = rng.integers(90, 190, (220, 260, 1), np.uint8).repeat(3, axis=2)
    wall = cv2.resize(coarse, None, fx=8, fy=8, interpolation=cv2.INTER_LINEAR)
    picture = motorcycle().left
    width = round(POSTER_M * _TEXELS_PER_M)
    poster = cv2.resize(picture, (width, round(width * picture.shape[0] / picture.shape[1])))
    x, y = _POSTER_CORNER
    wall[y : y + poster.shape[0], x : x + width] = poster
    return wall.astype(np.uint8)
