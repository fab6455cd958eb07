"""Find the corners of the board in a photograph, to sub-pixel precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.io.images import AnyImage, as_rgb8
from aanet.rig.pattern import Pattern

Gray = NDArray[np.uint8]  # [H, W]
Points = NDArray[np.float64]  # [N, 2], pixels; the center of the top left pixel is (0, 0)

_FEWEST_CORNERS = 8  # of a ChArUco board that is partly hidden
_DETECTION_WIDTH = 800  # pixels; larger images are reduced to find a chessboard
_SHARP_PX, _SHARP_PART = 5.0, 0.006  # widest edge that counts as sharp: in pixels, or of the image's width
_WINDOW_PART, _LARGEST_WINDOW = (
    0.4,
    15,
)  # half the side of the window for sub-pixel corners: of a square, in px
_EXHAUSTIVE = cv2.CALIB_CB_NORMALIZE_IMAGE | cv2.CALIB_CB_ACCURACY | cv2.CALIB_CB_EXHAUSTIVE


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners that were found in one image."""

    points: Points
    numbers: NDArray[np.int64]  # [N], which corner of the pattern each one is
    edge_px: float  # width of the transition from black to white
    is_blurred: bool

    def of(self, numbers: NDArray[np.int64]) -> Points:
        """The points with these numbers, all of which must be there."""
        return self.points[np.searchsorted(self.numbers, numbers)]


def as_gray(image: AnyImage) -> Gray:
    """Convert any image to 8-bit gray."""
    return cv2.cvtColor(as_rgb8(image), cv2.COLOR_RGB2GRAY).astype(np.uint8)


def find_corners(gray: Gray, pattern: Pattern) -> Corners | None:
    """Find the board: all of a chessboard, or any part of a ChArUco board; None if it is not there."""
    if pattern.kind == "charuco":
        detected = _detect_charuco(gray, pattern)
    else:
        detected = _detect_chessboard(gray, pattern)
    if detected is None:
        return None
    points, numbers = _refine(gray, *detected, pattern), detected[1]
    width = edge_width(gray, points, numbers, pattern)
    return Corners(points, numbers, width, width > max(_SHARP_PX, _SHARP_PART * gray.shape[1]))


def _detect_chessboard(gray: Gray, pattern: Pattern) -> tuple[Points, NDArray[np.int64]] | None:
    """Find the board in a reduced image, which takes 0.3 s for 800×600 pixels, but 2 s for 1920×1440.

    No precision is lost, because the corners are refined in the full image.  A blurred board is found in a
    small image only.
    """
    first = math.ceil(gray.shape[1] / _DETECTION_WIDTH)
    for reduction in (first, first // 2, 2 * first, 4 * first):
        if reduction == 0 or (reduction > first and min(gray.shape) < 100 * reduction):
            continue
        size = (gray.shape[1] // reduction, gray.shape[0] // reduction)
        smaller = cv2.resize(gray, size, interpolation=cv2.INTER_AREA)
        found, corners = cv2.findChessboardCornersSB(smaller, pattern.corners, flags=_EXHAUSTIVE)
        if found:
            points = np.asarray(corners, np.float64).reshape(-1, 2)  # [N, 1, 2] in OpenCV 4
            return (points + 0.5) * reduction - 0.5, np.arange(len(points))
    return None


def _detect_charuco(gray: Gray, pattern: Pattern) -> tuple[Points, NDArray[np.int64]] | None:
    corners, numbers, *_ = cv2.aruco.CharucoDetector(pattern.aruco_board).detectBoard(gray)
    if corners is None or numbers is None or len(corners) < _FEWEST_CORNERS:
        return None
    points, indices = np.asarray(corners, np.float64).reshape(-1, 2), np.ravel(numbers).astype(np.int64)
    columns = pattern.corners[0]
    if len(set(indices % columns)) < 2 or len(set(indices // columns)) < 2:  # all on one line
        return None
    order = np.argsort(indices)
    return points[order], indices[order]


def _refine(gray: Gray, points: Points, numbers: NDArray[np.int64], pattern: Pattern) -> Points:
    """Move the corners to where the gradients around them meet.

    On rendered chessboards with squares of 15 pixels it lowers the detector's error from 0.14 to 0.05 pixels,
    and ChArUco corners of OpenCV 4.10 are half a pixel off without it.
    """
    grid = _on_grid(points, numbers, pattern)
    steps = [np.linalg.norm(np.diff(grid, axis=axis), axis=2).ravel() for axis in (0, 1)]
    part = _WINDOW_PART if pattern.marker_mm is None else 0.5 * (1 - pattern.marker_mm / pattern.square_mm)
    window = int(np.clip(part * np.nanmin(np.concatenate(steps)), 2, _LARGEST_WINDOW))
    start = points.astype(np.float32).reshape(-1, 1, 2)
    stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-3)
    refined = cv2.cornerSubPix(gray, start, (window, window), (-1, -1), stop)
    return np.asarray(refined, np.float64).reshape(-1, 2)


def _on_grid(points: Points, numbers: NDArray[np.int64], pattern: Pattern) -> NDArray[np.float64]:
    """The corners as [rows, columns, 2]; NaN where one was not found."""
    columns, rows = pattern.corners
    known = np.full((rows * columns, 2), np.nan)
    known[numbers] = points
    return known.reshape(rows, columns, 2)


def edge_width(gray: Gray, points: Points, numbers: NDArray[np.int64], pattern: Pattern) -> float:
    """Median width in pixels of the transition from black to white between neighboring corners of a row.

    The width is that of a ramp with the contrast and the steepest slope of the edge.
    """
    grid = _on_grid(points, numbers, pattern)
    start, end = grid[:, :-1].reshape(-1, 2), grid[:, 1:].reshape(-1, 2)
    there = np.isfinite(start + end).all(axis=1)
    if not there.any():
        return 0.0
    along = (end - start)[there]
    normal = along[:, ::-1] * (-1, 1)
    # Within a quarter of a square, or within the white frame of a marker.
    reach = 0.25 if pattern.marker_mm is None else 0.5 * (1 - pattern.marker_mm / pattern.square_mm)
    steps = np.linspace(-reach, reach, 41)
    places = ((start + end)[there] / 2)[:, None] + normal[:, None] * steps[:, None]  # [M, 41, 2]
    maps = places.astype(np.float32)
    profiles = cv2.remap(gray, maps[..., 0], maps[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    values = np.asarray(profiles, np.float64)
    pixels_per_step = np.linalg.norm(along, axis=1) * (steps[1] - steps[0])
    slope = np.abs(np.diff(values, axis=1)).max(axis=1) / pixels_per_step
    return float(np.median(np.ptp(values, axis=1) / np.maximum(slope, 1e-6)))


def find_other_board(gray: Gray, pattern: Pattern) -> str | None:
    """Look for a board of another kind or size, to tell a user who gave the wrong pattern; or None."""
    for name in ("4x4_1000", "5x5_1000", "6x6_1000", "7x7_1000", "apriltag_36h11"):
        dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, f"DICT_{name}".upper()))
        _, numbers, _ = cv2.aruco.ArucoDetector(dictionary).detectMarkers(gray)
        if numbers is not None and len(numbers) >= 4:
            return f"a board with {len(numbers)} markers of {name.removesuffix('_1000')}"
    found, _, layout = cv2.findChessboardCornersSBWithMeta(gray, (3, 3), _EXHAUSTIVE | cv2.CALIB_CB_LARGER)
    if found:
        rows, columns = np.asarray(layout).shape[:2]
        if {columns, rows} != set(pattern.corners) or pattern.kind != "chessboard":
            return f"chessboard:{columns}x{rows}"
    return None
