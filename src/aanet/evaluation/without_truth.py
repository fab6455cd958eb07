"""How well disparities explain a pair whose ground truth is not known."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from aanet.inference.consistency import left_right_difference
from aanet.result import StereoResult
from aanet.typing import FloatMap, Image, Mask

MAX_DIFFERENCE_PX = 1.0  # of the disparities of one point in the two views
SSIM_WEIGHT = 0.85  # as in Godard et al., "Unsupervised Monocular Depth Estimation", CVPR 2017
_C1, _C2 = 0.01**2, 0.03**2  # of SSIM, for values in 0..1
_WINDOW = (3, 3)


@dataclass(frozen=True)
class Consistency:
    """What two views say about a disparity map.

    Attributes:
        agreement: Share of the left pixels whose disparity the right map confirms to within one pixel.
        photometric: Mean photometric error, 0 … 1, where at least one of the compared maps is confirmed.
    """

    agreement: float
    photometric: float


def compare(before: StereoResult, after: StereoResult) -> tuple[Consistency, Consistency]:
    """Score two results of one pair, each matched in both directions.

    The photometric errors are taken over the same pixels for both: those that either of them finds visible in
    both views. Otherwise a map could lower its error by declaring difficult pixels occluded.
    """
    left, right = before.left, before.right
    assert right is not None  # a match has both images
    masks = [confirmed(result) for result in (before, after)]
    scored = masks[0] | masks[1]
    first, second = (
        Consistency(float(mask.mean()), _mean(photometric_error(left, right, each.disparity), scored))
        for each, mask in zip((before, after), masks, strict=True)
    )
    return first, second


def confirmed(result: StereoResult) -> Mask:
    """The left pixels whose disparity the map of the right view confirms."""
    assert result.right_disparity is not None  # matched with `check=True`
    agrees: Mask = left_right_difference(result.disparity, result.right_disparity) <= MAX_DIFFERENCE_PX
    return agrees


def photometric_error(left: Image, right: Image, disparity: FloatMap) -> FloatMap:
    """Difference in 0 … 1 between the left image and the right one warped by the disparity, [H, W].

    A weighted sum of (1 − SSIM) / 2, over windows of 3×3 pixels, and of the absolute difference. Beyond the
    border of the right image, its outermost pixels are repeated.
    """
    height, width = disparity.shape
    columns = np.arange(width, dtype=np.float32) - disparity
    rows = np.repeat(np.arange(height, dtype=np.float32)[:, None], width, axis=1)
    warped = cv2.remap(right, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    a: FloatMap = np.asarray(left, np.float32) / np.float32(255)
    b: FloatMap = np.asarray(warped, np.float32) / np.float32(255)
    difference = np.abs(a - b)
    error = SSIM_WEIGHT * (1 - _ssim(a, b)) / 2 + (1 - SSIM_WEIGHT) * difference
    return np.asarray(error.mean(axis=2), np.float32)


def _ssim(a: FloatMap, b: FloatMap) -> FloatMap:
    """Structural similarity of two images in 0..1, per channel, in −1 … 1."""
    mean_a, mean_b = cv2.blur(a, _WINDOW), cv2.blur(b, _WINDOW)
    variance_a = cv2.blur(a * a, _WINDOW) - mean_a * mean_a
    variance_b = cv2.blur(b * b, _WINDOW) - mean_b * mean_b
    covariance = cv2.blur(a * b, _WINDOW) - mean_a * mean_b
    similarity = (2 * mean_a * mean_b + _C1) * (2 * covariance + _C2)
    similarity /= (mean_a * mean_a + mean_b * mean_b + _C1) * (variance_a + variance_b + _C2)
    return np.clip(similarity, -1, 1)


def _mean(values: FloatMap, mask: Mask) -> float:
    """Mean over the mask; over everything if the mask is empty."""
    return float(values[mask].mean() if mask.any() else values.mean())
