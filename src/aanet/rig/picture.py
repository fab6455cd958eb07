"""The picture of a calibration: where the corners are, and a rectified pair with horizontal lines."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.rig.assessment import side_points
from aanet.rig.solve import Solution
from aanet.rig.views import Views
from aanet.typing import Image
from aanet.viz import panel
from aanet.viz.color import turbo

_WIDTH = 640  # of each image in the picture
_LINES = 12
_LINE_COLOR = (0, 220, 90)


def draw(views: Views, solution: Solution, titles: Sequence[str]) -> Image:
    """Draw coverage and a rectified pair.

    Args:
        views: The views, for the pair that is shown.
        solution: The calibrated rig.
        titles: What to write above the coverage of the left and the right camera and the rectified pair.
    """
    coverage = [_heat_map(views.example[side], side_points(solution, side)) for side in range(2)]
    rectified = [_with_lines(_fit_width(_rectified(views, solution, side))) for side in range(2)]
    return panel([*coverage, *rectified], titles)


def _heat_map(image: Image, points: NDArray[np.float64]) -> Image:
    """The image in gray, covered with the density of the corners, and each corner as a dot."""
    base = _fit_width(image)
    height, width = base.shape[:2]
    scale = width / image.shape[1]
    places = np.rint((points + 0.5) * scale - 0.5).astype(int)
    inside = (places >= 0).all(axis=1) & (places < (width, height)).all(axis=1)
    density = np.zeros((height, width), np.float32)
    np.add.at(density, (places[inside, 1], places[inside, 0]), 1)
    density = cv2.GaussianBlur(density, (0, 0), width / 30).astype(np.float32)
    heat = np.sqrt(density / max(float(density.max()), 1e-9))  # a single view is still visible
    colored = turbo()[(heat * 255).astype(np.uint8)]
    gray = cv2.cvtColor(cv2.cvtColor(base, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    mixed = np.ascontiguousarray((0.35 * gray + 0.65 * colored).astype(np.uint8))
    for x, y in places[inside].tolist():
        cv2.circle(mixed, (x, y), 1, (255, 255, 255), -1)
    return mixed


def _rectified(views: Views, solution: Solution, side: int) -> Image:
    lens, rectification = solution.lenses[side], solution.rectification
    rotation = (rectification.left_rotation, rectification.right_rotation)[side]
    projection = (rectification.left_projection, rectification.right_projection)[side]
    function = cv2.initUndistortRectifyMap if lens.model == "pinhole" else cv2.fisheye.initUndistortRectifyMap
    maps = function(lens.matrix, lens.distortion, rotation, projection[:, :3], views.size, cv2.CV_32FC1)
    return cv2.remap(views.example[side], *maps, cv2.INTER_LINEAR).astype(np.uint8)


def _with_lines(image: Image) -> Image:
    drawn = np.array(image)
    for row in np.linspace(0, image.shape[0], _LINES + 2)[1:-1].astype(int).tolist():
        cv2.line(drawn, (0, row), (image.shape[1] - 1, row), _LINE_COLOR)
    return drawn


def _fit_width(image: Image) -> Image:
    height = round(image.shape[0] * _WIDTH / image.shape[1])
    smaller = image.shape[1] > _WIDTH
    interpolation = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
    return cv2.resize(image, (_WIDTH, height), interpolation=interpolation).astype(np.uint8)
