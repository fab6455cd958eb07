"""Consistency of the left and the right disparity map, and completion of a map where they disagree."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np

from aanet.inference.holes import fill_smoothly
from aanet.typing import FloatMap, Mask

_MAX_LEFT_RIGHT_DIFFERENCE = 1.0  # pixels
_SUPPORT = 15  # side of the window in which consistent neighbors raise the confidence of a pixel


class Matched(NamedTuple):
    """The result of a classical matcher, [H, W] each.

    Attributes:
        disparity: In pixels, with holes filled.
        confidence: In 0 … 1.
        consistent: Where the left and the right map agree; elsewhere, pixels are occluded or ambiguous, and
            their disparity was filled from the surroundings.
    """

    disparity: FloatMap
    confidence: FloatMap
    consistent: Mask


def complete(left: FloatMap, right: FloatMap, max_disparity: int) -> Matched:
    """Fill the pixels of a left map that the right map contradicts, and derive a confidence.

    Args:
        left: Disparity of the left image in pixels, NaN where unknown, [H, W].
        right: The same of the right image, on its own grid.
        max_disparity: Upper bound of the result in pixels.
    """
    difference = left_right_difference(left, right)
    consistent = difference <= _MAX_LEFT_RIGHT_DIFFERENCE
    dense = fill_smoothly(np.where(consistent, left, np.float32(np.nan)))
    dense = np.minimum(cv2.medianBlur(dense, 5), np.float32(max_disparity))
    agreement = np.where(consistent, np.exp(-np.where(consistent, difference, 0)), 0.2)
    support = cv2.blur(consistent.astype(np.float32), (_SUPPORT, _SUPPORT))
    return Matched(dense.astype(np.float32), (agreement * support).astype(np.float32), consistent)


def left_right_difference(left: FloatMap, right: FloatMap) -> FloatMap:
    """|d_left(x) − d_right(x − d_left(x))|; infinite where either is unknown or outside the right image."""
    width = left.shape[1]
    matched = np.arange(width) - left
    known = np.isfinite(left) & (matched > -0.5)
    column = np.where(known, np.rint(matched), 0).astype(np.int64)
    difference: FloatMap = np.abs(left - np.take_along_axis(right, column, axis=1))
    return np.where(known & np.isfinite(difference), difference, np.float32(np.inf))
