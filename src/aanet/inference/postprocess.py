"""Optional post-processing of a predicted disparity."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.inference.holes import fill_smoothly
from aanet.inference.processing import Processing
from aanet.typing import FloatMap

# Largest range of disparities within 3×3 pixels of one surface: it changes by less than 1 per pixel wherever
# both cameras see it.
STEEPEST = 4.0


def postprocess(disparity: FloatMap, steps: Processing) -> FloatMap:
    """Apply the steps that were decided to disparity maps [B, H, W]."""
    if steps.sharpen_edges:
        disparity = np.stack([sharpen_edges(each) for each in disparity])
    if steps.fill_border:
        disparity = np.stack([fill_left_border(each) for each in disparity])
    return disparity


def sharpen_edges(disparity: FloatMap) -> FloatMap:
    """Assign every pixel of a blurred edge to one of the two surfaces.

    Disparities between those of two surfaces are outliers, visible as points that float between the surfaces.
    Where the disparities in a 3×3 window have a larger range than one surface can have, the center gets the
    minimum or the maximum of the window, whichever is closer (toggle mapping, Kramer and Bruckner 1975).
    A median filter before that removes single outliers.

    Args:
        disparity: [H, W] in pixels.
    """
    median = cv2.medianBlur(np.ascontiguousarray(disparity, np.float32), 3)
    window = np.ones((3, 3), np.uint8)
    low, high = cv2.erode(median, window), cv2.dilate(median, window)
    nearer = np.where(median - low > high - median, high, low)
    return np.where(high - low > STEEPEST, nearer, median).astype(np.float32, copy=False)


def fill_left_border(disparity: FloatMap) -> FloatMap:
    """Fill the left border, which is outside the view of the right camera.

    The matches of these pixels would be outside the right image, so the network could not compare anything
    there.  They are filled from the nearest pixels in the row that have a match.

    Args:
        disparity: [H, W] in pixels; returned unchanged if no pixel has a match.
    """
    matched = disparity <= np.arange(disparity.shape[1])
    return fill_smoothly(np.where(matched, disparity, np.float32(np.nan))) if matched.any() else disparity
