"""Facets in space: projection into the left camera, clipping to the view and drawing of masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.synthetic.surfaces import Matrix, Plane, Relief, Texture
from aanet.typing import FloatMap

Points = NDArray[np.float64]
Vector = tuple[float, float, float]
Extent = tuple[float, float, float, float]  # x0, y0, x1, y1 in left pixels
Number = TypeVar("Number", np.float64, np.int32)
NEAREST = 0.15  # m: minimum distance from the camera
SMALLEST = 1.0  # px: narrower facets, and those shorter than four times this, are skipped
OVERLAP = 0.7  # px by which sheets with a shared edge overlap, so that no gap is visible


@dataclass(frozen=True)
class Viewpoint:
    """The left pinhole camera, at `height` above the floor. World: x right, y up, z ahead, floor at y = 0."""

    focal: float
    cx: float
    cy: float
    size: tuple[int, int]
    height: float
    rotation: Matrix  # world directions (y down) to camera directions

    def to_camera(self, world: Points) -> Points:
        """Convert world points to camera coordinates, [N, 3]."""
        down = world * (1.0, -1.0, 1.0)
        down[:, 1] += self.height
        return np.asarray(down @ self.rotation.T)

    def project(self, points: Points) -> Points:
        """Project camera coordinates to left pixels, [N, 2]."""
        pixels = self.focal * points[:, :2] / points[:, 2:]
        return np.asarray(pixels + np.array([self.cx, self.cy]))

    def world_at(self, x: float, distance: float) -> float:
        """Return the world x at which a point at eye level and `distance` appears in pixel column `x`."""
        return self.point_at(x, self.cy, distance)[0]

    def point_at(self, x: float, y: float, distance: float) -> Vector:
        """Return the world point at `distance` that appears at pixel (x, y)."""
        ray = self.rotation.T @ np.array([(x - self.cx) / self.focal, (y - self.cy) / self.focal, 1.0])
        across, down = (ray[:2] / max(ray[2], 0.2) * distance).tolist()
        return across, self.height - down, distance


@dataclass(frozen=True)
class Material:
    """The appearance of a facet."""

    texture: Texture
    density: float = 1.0  # texels per pixel where the facet is nearest
    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    gloss: float = 0.0
    angle: float = 0.0
    mirror: tuple[Texture, float] | None = None  # reflected texture and strength


class ReliefMaker(Protocol):
    """Creates the relief of a facet once its disparities are known."""

    def __call__(self, plane: Plane, extent: Extent) -> Relief:
        """Return the relief on a plane, for a facet that covers `extent` of the left view."""
        ...

    def swell(self, extent: Extent, /) -> float:
        """Return the maximum increase of the facet's disparity by the relief, as a share."""
        ...


@dataclass(frozen=True)
class Facet:
    """The union of coplanar contours in camera coordinates, with a material."""

    contours: list[Points]
    material: Material
    group: int = -1
    decal: bool = False
    opacity: float = 1.0
    blur: float = 0.0  # px, for soft shadows
    relief: ReliefMaker | None = None

    def inverse_depth(self) -> Vector | None:
        """The q of 1 / Z = q · ray for the facet's plane n · P = k (q = n / k); None if seen edge-on."""
        first = self.contours[0]
        third = len(first) // 3
        # Plain numbers, because NumPy is many times slower on three of them.
        (px, py, pz), (qx, qy, qz), (rx, ry, rz) = first[[0, third, 2 * third]].tolist()
        ax, ay, az, bx, by, bz = qx - px, qy - py, qz - pz, rx - px, ry - py, rz - pz
        nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        k = nx * px + ny * py + nz * pz
        if abs(k) < 1e-3 * math.sqrt((nx * nx + ny * ny + nz * nz) * (px * px + py * py + pz * pz)):
            return None
        return nx / k, ny / k, nz / k


@dataclass(frozen=True)
class Placement:
    """A facet as the left camera sees it."""

    q: Vector  # 1 / Z = q · ray
    pixels: list[Points]  # contours in left pixels, [N, 2]
    extent: Extent  # of all pixels
    nearest: float  # largest focal / Z in the left view; 0 if only visible in the right view
    near_pixel: tuple[float, float]
    seen: Points  # corners of the visible part, [N, 2]


def place_facet(facet: Facet, view: Viewpoint) -> Placement | None:
    """Project a facet; None if it is behind the camera, almost edge-on or outside both views."""
    q = facet.inverse_depth()
    if q is None:
        return None
    contours = facet.contours
    points = join(contours)
    if points[:, 2].min() < NEAREST:
        clipped = [_clip(c, np.array([0.0, 0.0, 1.0]), NEAREST) for c in contours]
        contours = [c for c in clipped if len(c) >= 3]
        if not contours:
            return None
        points = join(contours)
    joined = view.project(points)
    x0, y0 = joined.min(axis=0).tolist()
    x1, y1 = joined.max(axis=0).tolist()
    found = _in_view(joined, (x0, y0, x1, y1), view.size)
    if found is None:
        return None
    part, outside = found
    # focal / Z, which is the disparity for a baseline of one
    nearness = part @ q[:2] + (view.focal * q[2] - view.cx * q[0] - view.cy * q[1])
    best = int(nearness.argmax())
    # For the overlap of sheets and the extent of pixels.  If even the nearest point is within this margin of
    # infinity, the facet is a line of pixels, with negative disparities beside it.
    margin = 1.5 * (abs(q[0]) + abs(q[1]))
    if margin > nearness[best]:
        return None
    nearest = 0.0 if outside else float(nearness[best]) + margin
    if facet.relief is not None:
        nearest *= 1.0 + facet.relief.swell((x0, y0, x1, y1))
    x, y = part[best].tolist()
    return Placement(q, split_like(joined, contours), (x0, y0, x1, y1), nearest, (x, y), part)


def _in_view(pixels: Points, extent: Extent, size: tuple[int, int]) -> tuple[Points, bool] | None:
    """Return points [N, 2] that span the visible part, and whether it is only in the right view.

    None if neither camera sees it, or too little of it.
    """
    height, width = size
    x0, y0, x1, y1 = extent
    if _tiny(min(x1, 1.5 * width) - max(x0, -2.0), min(y1, height + 2.0) - max(y0, -2.0)):
        return None
    if x0 >= 0 and y0 >= 0 and x1 < width and y1 < height:
        return pixels, False
    hull = np.asarray(cv2.convexHull(pixels.astype(np.float32)), np.float32)
    reach = _within(hull, -2.0, -2.0, 1.5 * width, height + 2.0)
    if len(reach) < 3 or _tiny(*np.ptp(reach, axis=0).tolist()):
        return None
    part = _within(hull, 0.0, 0.0, width - 1.0, height - 1.0)
    return (part, False) if len(part) >= 3 else (reach, True)


def _tiny(width: float, height: float) -> bool:
    """Whether a size in pixels is too small to draw."""
    return min(width, height) < SMALLEST or max(width, height) < 4 * SMALLEST


def join(parts: Sequence[Points]) -> Points:
    """Concatenate contours, [N, 2] or [N, 3]; most facets have a single one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def split_like(joined: NDArray[Number], parts: Sequence[NDArray[np.float64]]) -> list[NDArray[Number]]:
    """Split points concatenated by `join(parts)`."""
    if len(parts) == 1:
        return [joined]
    ends = list(accumulate(len(part) for part in parts))
    return [joined[end - len(part) : end] for part, end in zip(parts, ends, strict=True)]


def _clip(points: Points, normal: Points, least: float) -> Points:
    """Sutherland-Hodgman: the part of a closed contour where normal · p >= least."""
    side = points @ normal - least
    if (side >= 0).all():
        return points
    kept: list[Points] = []
    for i in range(len(points)):
        j = (i + 1) % len(points)
        if side[i] >= 0:
            kept.append(points[i])
        if (side[i] >= 0) != (side[j] >= 0):
            kept.append(points[i] + (points[j] - points[i]) * (side[i] / (side[i] - side[j])))
    return np.array(kept).reshape(-1, points.shape[1])


def _within(hull: FloatMap, x0: float, y0: float, x1: float, y1: float) -> Points:
    """The part of a convex polygon [N, 1, 2] within a rectangle, [M, 2]; empty if there is none."""
    rectangle = np.array([[[x0, y0]], [[x1, y0]], [[x1, y1]], [[x0, y1]]], np.float32)
    area, part = cv2.intersectConvexConvex(hull, rectangle)
    return np.zeros((0, 2)) if area <= 0 or part is None else part[:, 0].astype(np.float64)


def draw_mask(
    facet: Facet, place: Placement, size: tuple[int, int], rng: np.random.Generator
) -> tuple[FloatMap, Matrix]:
    """Draw the coverage of a facet on its own grid; also returns the map from left pixels to that grid.

    `size` is the part of the left image plane that either camera can see. The grid has a random subpixel
    offset, so that the mask is interpolated in the left view as it is in the right one.
    """
    # Grid spacing in px; blurred masks need less detail.
    step = 4 if facet.blur >= 4 else 2 if facet.blur >= 2 else 1
    margin = 2.0 + 3.0 * facet.blur
    (left, top, right, bottom), (shift_x, shift_y) = place.extent, rng.random(2).tolist()
    x0 = math.floor(_limited(left - margin, -margin, size[1] + margin)) + shift_x
    y0 = math.floor(_limited(top - margin, -margin, size[0] + margin)) + shift_y
    width = int((_limited(right + margin, -margin, size[1] + margin) - x0) / step) + 2
    height = int((_limited(bottom + margin, -margin, size[0] + margin) - y0) / step) + 2
    # Supersampled except for large sheets, for which OpenCV's anti-aliasing is good enough.
    fine = 4 if width * height < 60_000 else 1
    canvas = np.zeros((height * fine, width * fine), np.uint8)
    scale = 16.0 * fine / step
    offset = (8.0 * (fine - 1) - x0 * scale, 8.0 * (fine - 1) - y0 * scale)
    fixed = np.rint(join(place.pixels) * scale + offset).astype(np.int32)
    outlines = split_like(fixed, place.pixels)
    line = cv2.LINE_8 if fine > 1 else cv2.LINE_AA
    for outline in outlines:
        cv2.fillPoly(canvas, [outline], 255, line, shift=4)
    if facet.group >= 0:
        cv2.polylines(canvas, outlines, True, 255, max(round(2 * OVERLAP * fine), 2), line, shift=4)
    for _ in range(fine // 2):  # two halvings are faster than one quartering
        half = (canvas.shape[1] // 2, canvas.shape[0] // 2)
        canvas = np.asarray(cv2.resize(canvas, half, interpolation=cv2.INTER_AREA), np.uint8)
    if facet.blur > 0:
        canvas = np.asarray(cv2.GaussianBlur(canvas, (0, 0), facet.blur / step), np.uint8)
    grid = np.array([[1 / step, 0.0, -x0 / step], [0.0, 1 / step, -y0 / step], [0.0, 0.0, 1.0]])
    return canvas * np.float32(1 / 255), grid


def _limited(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)
