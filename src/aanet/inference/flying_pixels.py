"""Pixels at edges whose disparity lies between two surfaces, so that their points float in the air."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.typing import FloatMap, Mask

SAME_SURFACE = 1.0  # pixels of disparity
_WINDOW = 5  # side of the surroundings; networks blur edges by a pixel or two on either side
_SUPPORT = 10  # of the 25 pixels, at the straight edge of a surface at least 15 are on it


def flying_pixels(disparity: FloatMap) -> Mask:
    """True where a disparity lies between those of two surfaces and belongs to neither, [H, W].

    Of the surrounding 5×5 pixels, some are nearer and some farther by more than `SAME_SURFACE`, and fewer
    than ten are within it.  A thin object is nearer than everything around it and stays, and so do
    surfaces that are not steeper than a pixel of disparity per pixel.
    """
    known = np.isfinite(disparity)
    kernel = np.ones((_WINDOW, _WINDOW), np.uint8)
    highest = cv2.dilate(np.where(known, disparity, -np.float32(np.inf)), kernel)
    lowest = cv2.erode(np.where(known, disparity, np.float32(np.inf)), kernel)
    flying = known & (highest > disparity + SAME_SURFACE) & (lowest < disparity - SAME_SURFACE)
    rows, columns = np.nonzero(flying)
    reach = _WINDOW // 2
    padded = np.pad(disparity, reach, mode="edge")
    support = np.zeros(rows.size, np.int64)
    for dy in range(_WINDOW):
        for dx in range(_WINDOW):
            difference = np.abs(padded[rows + dy, columns + dx] - disparity[rows, columns])
            support += difference <= SAME_SURFACE
    flying[rows, columns] = support < _SUPPORT
    return flying
