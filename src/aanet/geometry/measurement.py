"""Depths and distances of single pixels in meters, with their uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.geometry.camera import StereoCamera
from aanet.typing import FloatMap

Pixel = tuple[float, float]  # column x and row y

_LEAST, _MOST = 0.01, 0.99  # confidences are clipped to these; no disparity is exact
_REACH = 3  # the noise is estimated from the second differences within 7×7 pixels
_PIXEL = 1 / math.sqrt(12)  # standard deviation of a position that is rounded to a pixel


@dataclass(frozen=True)
class Length:
    """A length in meters, and its standard deviation."""

    meters: float
    uncertainty: float

    def __str__(self) -> str:
        digits = min(max(1 - math.floor(math.log10(max(self.uncertainty, 1e-9))), 0), 4)
        return f"{self.meters:.{digits}f} ± {self.uncertainty:.{digits}f} m"


def depth_at(camera: StereoCamera, disparity: FloatMap, confidence: FloatMap, pixel: Pixel) -> Length:
    """The depth of a pixel; σ_Z = Z² σ_d / (fx · baseline)."""
    point = _point(camera, disparity, confidence, pixel)
    return Length(point.depth, point.deviation)


def distance(
    camera: StereoCamera, disparity: FloatMap, confidence: FloatMap, first: Pixel, second: Pixel
) -> Length:
    """The distance of the points of two pixels.

    With the unit vector u from one to the other, and the rays r = ((x − cx) / fx, (y − cy) / fy, 1), the
    variance is the sum over both of (u · r σ_Z)² and, for the choice of the pixel, (Z / fx)² / 12.
    """
    ends = [_point(camera, disparity, confidence, pixel) for pixel in (first, second)]
    between = ends[1].depth * ends[1].ray - ends[0].depth * ends[0].ray
    length = float(np.linalg.norm(between))
    variance = 0.0
    for end in ends:
        along = end.ray @ between / length if length > 0 else np.linalg.norm(end.ray)
        variance += float(along * end.deviation) ** 2 + (_PIXEL * end.depth / camera.fx) ** 2
    return Length(length, math.sqrt(variance))


def disparity_noise(disparity: FloatMap, confidence: FloatMap, x: int, y: int) -> float:
    """The standard deviation of the disparity of a pixel, in pixels: √(σ_local² + σ_confidence²).

    σ_local is that of the noise of the surrounding pixels.  Second differences, d(x) − (d(x−1) + d(x+1)) / 2,
    are 0 on a plane and have 3/2 of the variance of the noise; their median does not depend on a few edges.
    σ_confidence takes the confidence c as the probability that the error is below one pixel, and the errors
    as distributed logistically: σ = π / (2 √3 artanh c), which is 1.1 pixels for 0.68 and 0.5 for 0.95.
    """
    around = disparity[max(y - _REACH, 0) : y + _REACH + 1, max(x - _REACH, 0) : x + _REACH + 1]
    seconds = [
        (lines[1:-1] - (lines[:-2] + lines[2:]) / 2).ravel()
        for lines in (around.astype(np.float64), around.astype(np.float64).T)
    ]
    differences = np.abs(np.concatenate(seconds))
    differences = differences[np.isfinite(differences)]
    local = 1.4826 * float(np.median(differences)) / math.sqrt(1.5) if differences.size else 0.0
    sure = min(max(float(confidence[y, x]), _LEAST), _MOST)
    return math.hypot(local, math.pi / (2 * math.sqrt(3) * math.atanh(sure)))


class _Point(NamedTuple):
    """A pixel in space."""

    depth: float
    deviation: float  # of the depth
    ray: NDArray[np.float64]  # the point at a depth of 1


def _point(camera: StereoCamera, disparity: FloatMap, confidence: FloatMap, pixel: Pixel) -> _Point:
    height, width = disparity.shape
    try:
        x, y = (round(float(coordinate)) for coordinate in pixel)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"A pixel is given by two numbers, x and y; got {str(pixel)[:60]}.") from None
    if not (0 <= x < width and 0 <= y < height):
        raise InputError(f"The pixel ({x}, {y}) is not in the image of {width}×{height} pixels.")
    above_infinity = float(disparity[y, x]) + camera.doffs
    if not 0 < above_infinity < math.inf:
        raise InputError(f"The pixel ({x}, {y}) has no depth: its disparity is unknown or that of infinity.")
    depth = camera.fx * camera.baseline_m / above_infinity
    noise = disparity_noise(disparity, confidence, x, y)
    ray = np.array([(x - camera.cx) / camera.fx, (y - camera.cy) / (camera.fy or camera.fx), 1.0])
    return _Point(depth, depth**2 * noise / (camera.fx * camera.baseline_m), ray)
