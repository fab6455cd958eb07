"""Optional post-processing of a predicted disparity."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.inference.hints import InferenceHints
from aanet.inference.holes import fill_smoothly
from aanet.typing import FloatMap

# Pixels of disparity within 3×3: a surface that both cameras see changes by less than 1 a pixel.
STEEPEST = 4.0


def postprocess(disparity: FloatMap, hints: InferenceHints) -> FloatMap:
    """Apply the steps that `hints` recommend to disparity maps [B, H, W]."""
    if hints.sharpen_edges:
        disparity = np.stack([sharpen_edges(each) for each in disparity])
    if hints.fill_border:
        disparity = np.stack([fill_left_border(each) for each in disparity])
    return disparity


def sharpen_edges(disparity: FloatMap) -> FloatMap:
    """Give every pixel of a blurred edge to one of the two surfaces.

    Disparities between two surfaces belong to neither; as points they fly between them.  Where a window of
    3×3 spans more than any one surface could, its middle takes the smallest or the largest value in it,
    whichever is nearer (toggle mapping, Kramer and Bruckner 1975).  A median before that removes specks.

    Args:
        disparity: [H, W] in pixels.
    """
    median = cv2.medianBlur(np.ascontiguousarray(disparity, np.float32), 3)
    window = np.ones((3, 3), np.uint8)
    low, high = cv2.erode(median, window), cv2.dilate(median, window)
    nearer = np.where(median - low > high - median, high, low)
    return np.where(high - low > STEEPEST, nearer, median).astype(np.float32, copy=False)


def fill_left_border(disparity: FloatMap) -> FloatMap:
    """Continue surfaces into what the right camera does not see: past the left end of its image.

    By their disparity, matches of those pixels lie outside of the right image, so nothing was compared there
    and a network guesses.  They are filled as holes, from the nearest pixels in the row that have a match.

    Args:
        disparity: [H, W] in pixels; returned as it is if nothing in it has a match.
    """
    matched = disparity <= np.arange(disparity.shape[1])
    return fill_smoothly(np.where(matched, disparity, np.float32(np.nan))) if matched.any() else disparity
