"""Facets in space before the left camera: projection, clipping to the view and drawing of masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import FloatMap
from aanet.data.synthetic.surfaces import Matrix, Plane, Relief, Texture

Points = NDArray[np.float64]
Extent = tuple[float, float, float, float]  # x0, y0, x1, y1 in left pixels
Number = TypeVar("Number", np.float64, np.int32)
NEAREST = 0.15  # m: nothing is nearer to the camera
SMALLEST = 1.0  # px: a facet that is narrower, or shorter than four times this, is not worth its time
OVERLAP = 0.7  # px by which sheets that share an edge reach under each other, so that nothing shines through


@dataclass(frozen=True)
class Viewpoint:
    """The left camera: a pinhole `height` over the floor.  World: x right, y up, z ahead, floor at y = 0."""

    focal: float
    cx: float
    cy: float
    size: tuple[int, int]
    height: float
    rotation: Matrix  # world directions (y down) to camera directions

    def to_camera(self, world: Points) -> Points:
        """World points to camera coordinates, [N, 3]."""
        down = world * (1.0, -1.0, 1.0)
        down[:, 1] += self.height
        return np.asarray(down @ self.rotation.T)

    def project(self, points: Points) -> Points:
        """Camera coordinates to left pixels, [N, 2]."""
        pixels = self.focal * points[:, :2] / points[:, 2:]
        return np.asarray(pixels + np.array([self.cx, self.cy]))

    def world_at(self, x: float, distance: float) -> float:
        """The world x that a point at eye level, `distance` ahead, needs to appear in pixel column `x`."""
        ray = self.rotation.T @ np.array([(x - self.cx) / self.focal, 0.0, 1.0])
        return float(ray[0] / max(ray[2], 0.2) * distance)


@dataclass(frozen=True)
class Material:
    """What a facet is covered with."""

    texture: Texture
    density: float = 1.0  # texels per pixel where the facet is nearest
    colour: tuple[float, float, float] = (1.0, 1.0, 1.0)
    gloss: float = 0.0
    angle: float = 0.0


class ReliefMaker(Protocol):
    """Makes the relief of a facet once its disparities are known."""

    def __call__(self, plane: Plane, extent: Extent) -> Relief:
        """The relief on a plane, for a facet that fills `extent` of the left view."""
        ...

    def swell(self, extent: Extent, /) -> float:
        """By which share of its disparity the relief can bring the facet nearer."""
        ...


@dataclass(frozen=True)
class Facet:
    """Coplanar contours in camera coordinates, united, with a material."""

    contours: list[Points]
    material: Material
    group: int = -1
    decal: bool = False
    opacity: float = 1.0
    blur: float = 0.0  # px, for soft shadows
    relief: ReliefMaker | None = None

    def inverse_depth(self) -> Points | None:
        """The q of 1 / Z = q · ray for the facet's plane n · P = k (q = n / k); None if seen edge-on."""
        first = self.contours[0]
        third = len(first) // 3
        p, q, r = first[0], first[third], first[2 * third]
        normal = cross(q - p, r - p)
        k = float(normal @ p)
        if abs(k) < 1e-3 * math.sqrt(float(normal @ normal) * float(p @ p)):
            return None
        return np.asarray(normal / k)


@dataclass(frozen=True)
class Placement:
    """A facet as the left camera sees it."""

    q: Points  # 1 / Z = q · ray
    pixels: list[Points]  # contours in left pixels, [N, 2]
    nearest: float  # largest focal / Z in the left view; 0 where only the right camera sees it
    near_pixel: tuple[float, float]
    seen: Points  # corners of its part in the view, [N, 2]


def place_facet(facet: Facet, view: Viewpoint) -> Placement | None:
    """Project a facet; None if it is behind the camera, edge-on or outside both views."""
    q = facet.inverse_depth()
    if q is None:
        return None
    contours = facet.contours
    points = np.concatenate(contours)
    if points[:, 2].min() < NEAREST:
        clipped = [_clip(c, np.array([0.0, 0.0, 1.0]), NEAREST) for c in contours]
        contours = [c for c in clipped if len(c) >= 3]
        if not contours:
            return None
        points = np.concatenate(contours)
    joined = view.project(points)
    pixels = split_like(joined, contours)
    height, width = view.size
    hull = np.asarray(cv2.convexHull(joined.astype(np.float32)), np.float32)
    reach = _within(hull, -2.0, -2.0, 1.5 * width, height + 2.0)
    if len(reach) < 3:
        return None
    low, high = reach.min(axis=0), reach.max(axis=0)
    span = high - low
    if span.min() < SMALLEST or span.max() < 4 * SMALLEST:
        return None
    whole = low.min() >= 0 and high[0] < width and high[1] < height
    part = reach if whole else _within(hull, 0.0, 0.0, width - 1.0, height - 1.0)
    part, outside = (part, False) if len(part) >= 3 else (reach, True)
    # focal / Z, which is the disparity for a baseline of one
    nearness = (part - (view.cx, view.cy)) @ q[:2] + view.focal * q[2]
    best = int(np.argmax(nearness))
    # A pixel and a half further out, as far as sheets reach under each other and pixels beyond their centres.
    nearest = 0.0 if outside else float(nearness[best]) + 1.5 * float(abs(q[0]) + abs(q[1]))
    if facet.relief is not None:
        nearest *= 1.0 + facet.relief.swell((*joined.min(axis=0), *joined.max(axis=0)))
    return Placement(q, pixels, nearest, (float(part[best, 0]), float(part[best, 1])), part)


def cross(a: Points, b: Points) -> Points:
    """The cross product of two vectors; numpy's own takes twenty times as long on so few numbers."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def split_like(joined: NDArray[Number], parts: Sequence[NDArray[np.float64]]) -> list[NDArray[Number]]:
    """Undo a concatenation of `parts` after some work on the joined points."""
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
    facet: Facet, pixels: list[Points], size: tuple[int, int], rng: np.random.Generator
) -> tuple[FloatMap, tuple[float, float], Extent]:
    """Coverage of a facet on a grid of left pixels, the grid's origin, and the facet's extent.

    `size` is the part of the left plane that either camera can see.  The grid is shifted by a random part of
    a pixel, so that the left view interpolates the mask exactly as the right one does.
    """
    margin = 2.0 + 3.0 * facet.blur
    whole = np.concatenate(pixels)
    extent = (*whole.min(axis=0), *whole.max(axis=0))
    x0, x1 = np.clip((extent[0] - margin, extent[2] + margin), -margin, size[1] + margin)
    y0, y1 = np.clip((extent[1] - margin, extent[3] + margin), -margin, size[0] + margin)
    origin = np.floor((x0, y0)) + rng.random(2)
    width, height = int(x1 - origin[0]) + 2, int(y1 - origin[1]) + 2
    # Supersampled, but for large sheets: their outlines are few and straight, OpenCV's anti-aliasing will do.
    fine = 4 if width * height < 60_000 else 1
    canvas = np.zeros((height * fine, width * fine), np.uint8)
    fixed = np.round(((whole - origin + 0.5) * fine - 0.5) * 16).astype(np.int32)
    outlines = split_like(fixed, pixels)
    line = cv2.LINE_8 if fine > 1 else cv2.LINE_AA
    for outline in outlines:
        cv2.fillPoly(canvas, [outline], 255, line, shift=4)
    if facet.group >= 0:
        cv2.polylines(canvas, outlines, True, 255, max(round(2 * OVERLAP * fine), 2), line, shift=4)
    for _ in range(fine // 2):  # two halvings are faster than one quartering
        half = (canvas.shape[1] // 2, canvas.shape[0] // 2)
        canvas = np.asarray(cv2.resize(canvas, half, interpolation=cv2.INTER_AREA), np.uint8)
    mask: FloatMap = canvas * np.float32(1 / 255)
    if facet.blur > 0:
        mask = np.asarray(cv2.GaussianBlur(mask, (0, 0), facet.blur), np.float32)
    return mask, (origin[0], origin[1]), extent
