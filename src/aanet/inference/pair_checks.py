"""Checks of a pair for common mistakes, before it is matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.io.images import AnyImage, as_rgb8
from aanet.typing import Image

# The comments give the values of real pairs of Middlebury, KITTI and Scene Flow.
_MAX_MISALIGNMENT = 0.9  # pixels, root mean square over the image; real pairs stay below 0.5
_MIN_NEGATIVE = 0.8  # share of matches with a negative disparity; real pairs stay below 0.05
_MIN_TEXTURE = 0.02  # share of textured pixels; real pairs have more than 0.3, a dark tunnel of KITTI 0.04
_MAX_EXPOSURE_RATIO = 1.4  # ratio of the mean gray values; real pairs stay below 1.15
_MAX_IDENTICAL_DIFFERENCE = 0.5  # mean difference in gray levels; real pairs differ by 4 or more
_TEXTURED = 4.0  # standard deviation in gray levels above which a window counts as textured
_WORKING_SIZE = 1280  # longer side in pixels of the images in which points are matched
_MIN_MATCHES = 25
_TOLERANCE = 1.5  # vertical distance in pixels up to which a match is an inlier

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """The result of a check: a code for programs, and a sentence with the measured number for people.

    A warning means that the result is probably wrong.  A note says how the images are stored, which does not
    affect the result.
    """

    code: str
    message: str
    severity: Literal["note", "warning", "error"] = "warning"


@dataclass(frozen=True)
class Alignment:
    """The displacement of matched points; those of a rectified pair are in the same row."""

    offset: float  # pixels by which points are lower in the right image, at its center
    rotation: float  # clockwise rotation of the right image in degrees
    misalignment: float  # root mean square of the vertical displacement, in pixels of the working size
    negative: float  # share of the matches with a negative disparity


def check_pair(left: AnyImage, right: AnyImage) -> list[Finding]:
    """Check a pair of images as they are stored; returns an empty list if nothing was found."""
    if left.shape[:2] != right.shape[:2]:
        sizes = [f"{image.shape[1]}×{image.shape[0]}" for image in (left, right)]
        message = (
            f"The left image has {sizes[0]} pixels, the right one {sizes[1]}; a rectified pair has one size."
        )
        return [Finding("different_sizes", message, "error")]
    pair = (as_rgb8(left), as_rgb8(right))
    gray = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.uint8) for image in pair]
    identical = _check_identical(gray)
    alignment = None if identical else measure_alignment(gray[0], gray[1])
    return [
        *identical,
        *_check_alignment(alignment),
        *_check_texture(gray),
        *_check_exposure(gray),
        *_check_color(pair),
        *_check_storage(left, right),
    ]


def measure_alignment(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> Alignment | None:
    """Match points between two gray images and fit their vertical displacement; None if there are too few.

    The displacement of a rectified pair is 0.  A small rotation or a different focal length makes it linear,
    dy = a + b·x + c·y, which is fitted robustly because some matches are wrong.
    """
    height, width = left.shape
    scale = min(1.0, _WORKING_SIZE / max(height, width))
    in_left, in_right = _match_points(_shrink(left, scale), _shrink(right, scale))
    fit = _fit_rows(in_left, in_right, scale * width, scale * height)
    if fit is None:
        return None
    (a, b, c), inliers = fit
    columns = (in_left - in_right)[inliers, 0]
    return Alignment(
        offset=a / scale,
        rotation=float(np.degrees(np.arctan(b / (scale * width)))),
        misalignment=float(np.sqrt(a**2 + (b**2 + c**2) / 12)),  # x and y run from −½ to ½
        negative=float(np.mean(columns < -0.5)),
    )


def _match_points(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> tuple[Points, Points]:
    """Mutual nearest neighbors of ORB features, [N, 2] each."""
    detector = cv2.ORB.create(nfeatures=800, nlevels=4, fastThreshold=7)
    (left_keys, left_words), (right_keys, right_words) = (
        detector.detectAndCompute(image, np.full(image.shape, 255, np.uint8)) for image in (left, right)
    )
    if not left_keys or not right_keys:
        return np.zeros((0, 2)), np.zeros((0, 2))
    matches = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(left_words, right_words)
    close = [match for match in matches if match.distance < 64]  # of 256 bits
    in_left = [left_keys[match.queryIdx].pt for match in close]
    in_right = [right_keys[match.trainIdx].pt for match in close]
    return np.array(in_left, np.float64).reshape(-1, 2), np.array(in_right, np.float64).reshape(-1, 2)


def _fit_rows(
    left: Points, right: Points, width: float, height: float
) -> tuple[tuple[float, float, float], NDArray[np.bool_]] | None:
    """Fit dy = a + b·x + c·y by RANSAC, with x and y from −½ to ½; returns (a, b, c) and the inliers."""
    if len(left) < _MIN_MATCHES:
        return None
    design = np.column_stack([np.ones(len(left)), left[:, 0] / width - 0.5, left[:, 1] / height - 0.5])
    rows = right[:, 1] - left[:, 1]
    triples = np.random.default_rng(0).integers(0, len(left), (300, 3))
    spread = np.abs(np.linalg.det(design[triples])) > 0.02  # three points must not be on one line
    if not spread.any():
        return None
    models = np.linalg.solve(design[triples[spread]], rows[triples[spread], None])[..., 0]
    close = np.abs(models @ design.T - rows) < _TOLERANCE  # [models, matches]
    inliers = close[close.sum(axis=1).argmax()]
    for _ in range(3):
        a, b, c = np.linalg.lstsq(design[inliers], rows[inliers], rcond=None)[0]
        inliers = np.abs(design @ (a, b, c) - rows) < _TOLERANCE
    if inliers.sum() < max(_MIN_MATCHES, 0.3 * len(left)):
        return None
    return (float(a), float(b), float(c)), inliers


def _check_alignment(alignment: Alignment | None) -> list[Finding]:
    if alignment is None:
        return []
    findings = []
    if alignment.misalignment > _MAX_MISALIGNMENT:
        way = "lower" if alignment.offset > 0 else "higher"
        message = (
            f"The pair is not rectified: points are {abs(alignment.offset):.1f} px {way} in the right image, "
            f"which is rotated by {alignment.rotation:.2f}°; rectify it first."
        )
        findings.append(Finding("not_rectified", message))
    if alignment.negative > _MIN_NEGATIVE:
        message = (
            f"Left and right are probably swapped: {alignment.negative:.0%} of the matched points are "
            "farther to the right in the right image."
        )
        findings.append(Finding("swapped", message))
    return findings


def _check_storage(left: AnyImage, right: AnyImage) -> list[Finding]:
    findings = []
    alpha = [image.ndim == 3 and image.shape[2] == 4 for image in (left, right)]
    if any(alpha):
        message = f"{_which(alpha, 'has', 'have')} an alpha channel, which is ignored."
        findings.append(Finding("alpha", message, "note"))
    deep = [image.dtype == np.uint16 for image in (left, right)]
    if any(deep):
        largest = max(int(image.max()) for image, is_deep in zip((left, right), deep, strict=True) if is_deep)
        message = f"{_which(deep, 'has', 'have')} 16 bits per channel (largest value {largest} of 65535)."
        findings.append(Finding("sixteen_bit", message, "note"))
    return findings


def _check_color(pair: tuple[Image, Image]) -> list[Finding]:
    colorful = []
    for image in pair:
        red, green, blue = cv2.split(image)
        spread = cv2.max(cv2.absdiff(red, green), cv2.absdiff(green, blue))
        colorful.append(float(np.mean(spread > 2)))
    gray = [share < 1e-3 for share in colorful]
    if not any(gray):
        return []
    message = f"{_which(gray, 'is', 'are')} gray ({min(colorful):.1%} of the pixels have a color)."
    return [Finding("gray", message, "note")]


def _check_exposure(gray: Sequence[NDArray[np.uint8]]) -> list[Finding]:
    left, right = (float(image.mean()) + 1 for image in gray)  # + 1: two almost black images are alike
    ratio = max(left, right) / min(left, right)
    if ratio <= _MAX_EXPOSURE_RATIO:
        return []
    brighter, darker = ("left", "right") if left > right else ("right", "left")
    message = (
        f"The exposures differ: the {brighter} image is {ratio:.1f} times as bright as the {darker} one."
    )
    return [Finding("exposure", message)]


def _check_texture(gray: Sequence[NDArray[np.uint8]]) -> list[Finding]:
    shares = []
    for image in gray:
        values = image.astype(np.float32)
        variance = cv2.blur(values * values, (9, 9)) - cv2.blur(values, (9, 9)) ** 2
        shares.append(float(np.mean(variance > _TEXTURED**2)))
    if min(shares) >= _MIN_TEXTURE:
        return []
    message = f"There is almost no texture to match: only {min(shares):.1%} of the pixels are textured."
    return [Finding("no_texture", message)]


def _check_identical(gray: Sequence[NDArray[np.uint8]]) -> list[Finding]:
    difference = float(cv2.absdiff(gray[0], gray[1]).mean())
    if difference >= _MAX_IDENTICAL_DIFFERENCE:
        return []
    message = f"Both images are the same: they differ by {difference:.2f} of 255 gray levels on average."
    return [Finding("identical", message)]


def _shrink(image: NDArray[np.uint8], scale: float) -> NDArray[np.uint8]:
    if scale == 1:
        return image
    return cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA).astype(np.uint8)


def _which(sides: Sequence[bool], one: str, both: str) -> str:
    if all(sides):
        return f"Both images {both}"
    return f"The {'left' if sides[0] else 'right'} image {one}"
