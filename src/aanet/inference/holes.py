"""Filling pixels without a disparity from their neighbors in the row."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.typing import FloatMap, Mask


class Ends(NamedTuple):
    """The ends of the hole that each pixel is in, along its row; both ends of a known pixel are itself.

    Attributes:
        before: Column of the nearest known pixel to the left, −1 if there is none; [H, W].
        after: The same to the right, W if there is none.
        left: The disparity at `before`, infinite if there is none.
        right: The same at `after`.
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    left: FloatMap
    right: FloatMap


def ends_of_holes(disparity: FloatMap, known: Mask) -> Ends:
    """Find the nearest known pixels to the left and right of every pixel of [H, W]."""
    width = disparity.shape[1]
    columns = np.arange(width)
    before = np.maximum.accumulate(np.where(known, columns, -1), axis=1)
    after = np.minimum.accumulate(np.where(known, columns, width)[:, ::-1], axis=1)[:, ::-1]
    padded = np.pad(disparity, ((0, 0), (1, 1)), constant_values=np.inf)  # no value beyond the border
    left, right = (np.take_along_axis(padded, at + 1, axis=1) for at in (before, after))
    return Ends(before, after, left, right)


def fill_smoothly(disparity: FloatMap) -> FloatMap:
    """Fill NaN along the rows, then smooth the filled values across rows; known values do not change.

    If both ends of a hole may belong to one slanted surface, the values between them are interpolated
    linearly.  If they differ more, the hole is an occlusion and gets the smaller disparity, that of the
    background.  A row without any known pixel is copied from the nearest row that has one; a map without
    any becomes 0.

    Args:
        disparity: [H, W] in pixels.
    """
    known = np.isfinite(disparity)
    rows = np.flatnonzero(known.any(axis=1))
    if not rows.size:
        return np.zeros_like(disparity)
    nearest = np.rint(np.interp(np.arange(len(disparity)), rows, np.arange(len(rows)))).astype(np.int64)
    smooth = _fill_rows(disparity[rows])[nearest]
    for _ in range(4):
        smooth = cv2.medianBlur(smooth, 5).astype(np.float32)
    return np.where(known, disparity, smooth)


def _fill_rows(disparity: FloatMap) -> FloatMap:
    known = np.isfinite(disparity)
    before, after, left, right = ends_of_holes(disparity, known)
    a, b = left.astype(np.float64), right.astype(np.float64)
    gap = after - before
    both = np.isfinite(a) & np.isfinite(b)
    step = np.where(both, b, 0) - np.where(both, a, 0)
    one_surface = both & (np.abs(step) <= 3 + 0.2 * gap)
    line = np.where(both, a, 0) + step * (np.arange(disparity.shape[1]) - before) / np.maximum(gap, 1)
    return np.where(known, disparity, np.where(one_surface, line, np.minimum(a, b))).astype(np.float32)
