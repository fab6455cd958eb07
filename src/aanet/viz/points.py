"""Rendering of point clouds."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.typing import Image
from aanet.viz.color import PAPER


def render_points(
    points: NDArray[np.floating],
    colors: Image,
    width: int = 960,
    height: int = 640,
    yaw: float = 18.0,
    pitch: float = 12.0,
) -> Image:
    """Render a point cloud from a viewpoint that is rotated around its center.

    Args:
        points: [H, W, 3] in meters as `StereoCamera.points` returns them, X right, Y down, Z forward; NaN is
            no point.
        colors: RGB of each point, [H, W, 3].
        width: Width of the picture.
        height: Height of the picture.
        yaw: Rotation of the viewpoint to the right, in degrees.
        pitch: Rotation of the viewpoint upward, in degrees.
    """
    cloud, paint, spacing = _solid_points(points, colors)
    if not len(cloud):
        return np.full((height, width, 3), PAPER, np.uint8)
    middle = np.median(cloud, axis=0)
    distance = float(middle[2])
    seen = (cloud - middle) @ _orbit(yaw, pitch).T + (0, 0, distance)
    front = seen[:, 2] > 0.1 * distance
    seen, paint, spacing = seen[front], paint[front], spacing[front]
    flat = seen[:, :2] / seen[:, 2:]
    low, high = np.percentile(flat, [0.5, 99.5], axis=0)
    # Rendered at twice the size and reduced, which smooths the edges of the splats.
    focal = 2 * 0.92 * min(width / (high[0] - low[0]), height / (high[1] - low[1]))
    pixels = (flat - (low + high) / 2) * focal + (width, height)
    size = np.clip(np.ceil(focal * spacing / seen[:, 2]) + 1, 2, 8).astype(np.int64)
    picture = _splat(pixels, seen[:, 2], paint, size, 2 * width, 2 * height)
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


def _solid_points(
    points: NDArray[np.floating], colors: Image
) -> tuple[NDArray[np.float64], Image, NDArray[np.float64]]:
    """Points on surfaces (not isolated, not across an edge), their colors, and the distance to the next."""
    here: NDArray[np.float64] = points.astype(np.float64)
    depth = here[..., 2]
    right, below = (np.abs(np.diff(here, axis=axis, append=np.nan)) for axis in (1, 0))
    surface = np.isfinite(here).all(axis=2) & ~(np.fmax(right[..., 2], below[..., 2]) > 0.03 * depth)
    support = cv2.morphologyEx(surface.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    keep = surface & (support > 0)
    if keep.any():
        keep &= depth < 1.5 * np.percentile(depth[keep], 97)
    spacing: NDArray[np.float64] = np.fmax(np.linalg.norm(right, axis=2), np.linalg.norm(below, axis=2))
    return here[keep], colors[keep], np.nan_to_num(spacing[keep])


def _orbit(yaw: float, pitch: float) -> NDArray[np.float64]:
    """The rotation of the scene that corresponds to moving the viewpoint by `yaw` and `pitch`."""
    a, b = math.radians(yaw), math.radians(pitch)
    turn = np.array([[math.cos(a), 0, math.sin(a)], [0, 1, 0], [-math.sin(a), 0, math.cos(a)]])
    tilt = np.array([[1, 0, 0], [0, math.cos(b), -math.sin(b)], [0, math.sin(b), math.cos(b)]])
    rotation: NDArray[np.float64] = tilt @ turn
    return rotation


def _splat(
    pixels: NDArray[np.float64],
    depth: NDArray[np.float64],
    paint: Image,
    size: NDArray[np.int64],
    width: int,
    height: int,
) -> Image:
    """Draw the points as squares, the nearest on top."""
    order = np.argsort(-depth)  # the farthest first
    corner = (np.floor(pixels).astype(np.int64) - size[:, None] // 2)[order]
    size = size[order]
    top = np.full(height * width, -1, np.int32)  # index in `order` of the point seen in each pixel
    for dy in range(int(size.max())):
        for dx in range(int(size.max())):
            x, y = corner[:, 0] + dx, corner[:, 1] + dy
            inside = (size > max(dx, dy)) & (x >= 0) & (x < width) & (y >= 0) & (y < height)
            layer = np.full_like(top, -1)
            layer[(y * width + x)[inside]] = np.flatnonzero(inside)
            np.maximum(top, layer, out=top)
    canvas = np.full((height * width, 3), PAPER, np.uint8)
    canvas[top >= 0] = paint[order[top[top >= 0]]]
    return canvas.reshape(height, width, 3)
