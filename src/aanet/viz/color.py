"""Disparity, depth and error maps in color."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.typing import FloatMap, Image, Mask

UNKNOWN = (48, 48, 48)  # dark gray, which is not a color of the map
PAPER = 255  # background of pictures: white

# KITTI's error maps: upper limits of the bins in multiples of the outlier threshold (3 px and 5 %), and their
# colors (ColorBrewer's RdYlBu), as in the development kit of the 2015 benchmark.
KITTI_ERROR_BINS = tuple(0.1875 / 3 * 2**k for k in range(9))  # 0.1875 px, 0.375 px … 48 px if 3 px decide
KITTI_ERROR_COLORS = (
    *((49, 54, 149), (69, 117, 180), (116, 173, 209), (171, 217, 233), (224, 243, 248)),
    *((254, 224, 144), (253, 174, 97), (244, 109, 67), (215, 48, 39), (165, 0, 38)),
)


class ColorRange(NamedTuple):
    """The range of a color scale, of disparities in pixels or of depths in meters."""

    low: float
    high: float
    unit: Literal["px", "m"] = "px"

    @classmethod
    def of(cls, given: str | tuple[float, float] | ColorRange) -> ColorRange:
        """Check a range, or read one such as "5:80" or "5:80px" in pixels or "0.5:10m" in meters."""
        unit: Literal["px", "m"] = "m" if isinstance(given, ColorRange) and given.unit == "m" else "px"
        try:
            ends: Sequence[str | float] = given
            if isinstance(given, str):
                number = r"([0-9.eE+-]+)"
                match = re.fullmatch(rf"\s*{number}\s*:\s*{number}\s*(px|m)?\s*", given)
                ends = match.groups()[:2] if match else ()
                unit = "m" if match and match[3] == "m" else "px"
            low, high = float(ends[0]), float(ends[1])
        except (TypeError, ValueError, IndexError):
            low = high = math.nan
        if not (0 <= low < high < math.inf) or (unit == "m" and low == 0):
            expected = "LOW:HIGH in pixels, such as 5:80, or in meters, such as 0.5:10m"
            raise InputError(f"The range of the colors must be {expected}; got {str(given)[:40]}.")
        return cls(low, high, unit)


def value_range(values: FloatMap) -> tuple[float, float]:
    """The 1st and the 99th percentile of the finite values: a range that outliers do not affect."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 1.0, 2.0
    low, high = (float(value) for value in np.percentile(finite, [1, 99]))
    return (low, high) if high > low else (low, low + max(abs(low), 1.0) * 1e-3)


def colorize_disparity(disparity: FloatMap, vmin: float | None = None, vmax: float | None = None) -> Image:
    """Color a disparity map: near is red, far is blue (turbo), unknown is dark gray.

    The range of the colors is that of `value_range` by default.
    """
    return _colorize(disparity, vmin, vmax, "px")


def colorize_depth(depth: FloatMap, vmin: float | None = None, vmax: float | None = None) -> Image:
    """Color a depth map in meters: near is red, far is blue, on a logarithmic scale."""
    return _colorize(np.where(depth > 0, depth, np.float32(np.nan)), vmin, vmax, "m")


def colorize_error(predicted: FloatMap, truth: FloatMap, valid: Mask, dot: int = 1) -> Image:
    """Color errors as KITTI does: small errors are blue, outliers are yellow to red.

    The error is min(|e| / 3 px, |e| / (5 % of the truth)), which is above 1 for outliers.  Pixels without
    ground truth are black.  Sparse ground truth is easier to see with a `dot` of several pixels.
    """
    error = np.abs(predicted - truth)[valid]
    relative = error / np.maximum(np.abs(truth[valid]), np.float32(1e-6))
    bins = np.searchsorted(KITTI_ERROR_BINS, np.minimum(error / 3, relative / 0.05), side="right")
    picture = np.zeros((*truth.shape, 3), np.uint8)
    picture[valid] = np.array(KITTI_ERROR_COLORS, np.uint8)[bins]
    if dot == 1:
        return picture
    # Only pixels without ground truth take the color of a neighbor, the one with the largest error.
    rank = np.zeros(truth.shape, np.uint8)
    rank[valid] = bins + 1
    spread = cv2.dilate(rank, np.ones((dot, dot), np.uint8))
    palette = np.array([(0, 0, 0), *KITTI_ERROR_COLORS], np.uint8)
    return np.where(valid[..., None], picture, palette[spread])


def _colorize(values: FloatMap, vmin: float | None, vmax: float | None, unit: str) -> Image:
    low, high = value_range(values) if vmin is None or vmax is None else (vmin, vmax)
    low, high = (low if vmin is None else vmin), (high if vmax is None else vmax)
    if not low < high or (unit == "m" and low <= 0):
        raise InputError(f"A color scale needs vmin < vmax (depth: above 0); got {low:g} and {high:g}.")
    known = np.isfinite(values)
    near = np.clip(nearness(np.where(known, values, low), low, high, unit), 0, 1)
    colored = np.take(turbo(), (near * 255 + 0.5).astype(np.uint8), axis=0)  # faster than indexing
    colored[~known] = UNKNOWN
    return colored


def nearness(
    values: NDArray[np.floating] | float, vmin: float, vmax: float, unit: str
) -> NDArray[np.float64]:
    """Map values to 1 (near end of the scale) … 0 (far end): linear in pixels, logarithmic in meters."""
    near: NDArray[np.float64] = np.asarray(values, np.float64)
    if unit == "m":
        near, vmin, vmax = -np.log(near), -math.log(vmax), -math.log(vmin)
    return (near - vmin) / (vmax - vmin)


@lru_cache(maxsize=1)
def turbo() -> NDArray[np.uint8]:
    """The RGB colors of the turbo map, [256, 3], from blue to red."""
    ramp = np.arange(256, dtype=np.uint8)[None]
    return np.ascontiguousarray(cv2.applyColorMap(ramp, cv2.COLORMAP_TURBO)[0, :, ::-1].astype(np.uint8))
