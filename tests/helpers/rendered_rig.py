"""A stereo rig of known cameras that photographs boards and textured planes, rendered ray by ray.

The distortion models are written out here, so that nothing of what is tested takes part in the rendering.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.rig.board import black_rectangles
from aanet.rig.corners import Corners
from aanet.rig.pattern import Pattern
from aanet.rig.views import View, Views

Array = NDArray[np.float64]
Image = NDArray[np.uint8]

SUPERSAMPLING = 2
TEXELS_PER_MM = 1  # about as fine as the supersampled pixels, which avoids aliasing


def turned(x: float = 0, y: float = 0, z: float = 0) -> Array:
    """A rotation by degrees about the axes."""
    return np.asarray(cv2.Rodrigues(np.radians([x, y, z]))[0], np.float64)


@dataclass(frozen=True)
class Camera:
    """A camera with a known lens; `coefficients` are k1 k2 p1 p2 k3 (pinhole) or k1 k2 k3 k4 (fisheye)."""

    focal: float
    center: tuple[float, float]
    coefficients: tuple[float, ...]
    size: tuple[int, int]
    fisheye: bool = False

    @cached_property
    def rays(self) -> NDArray[np.float32]:
        """Direction of each supersampled pixel, [H, W, 3], by fixed-point iteration of the distortion."""
        width, height = self.size
        x, y = ((np.arange(count * SUPERSAMPLING) + 0.5) / SUPERSAMPLING - 0.5 for count in (width, height))
        bent = np.stack(np.meshgrid((x - self.center[0]) / self.focal, (y - self.center[1]) / self.focal), -1)
        if self.fisheye:
            distance = np.linalg.norm(bent, axis=2)
            theta = distance.copy()
            for _ in range(30):
                powers = sum(k * theta ** (2 * i + 3) for i, k in enumerate(self.coefficients))
                theta = distance - powers
            flat = bent * (np.sin(theta) / np.maximum(distance, 1e-12))[..., None]
            return np.concatenate([flat, np.cos(theta)[..., None]], axis=2).astype(np.float32)
        flat = bent.copy()
        k1, k2, p1, p2, k3 = self.coefficients
        for _ in range(30):
            u, v = flat[..., 0], flat[..., 1]
            r2 = u * u + v * v
            radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
            shift = np.stack(
                [2 * p1 * u * v + p2 * (r2 + 2 * u * u), p1 * (r2 + 2 * v * v) + 2 * p2 * u * v], -1
            )
            flat = (bent - shift) / radial[..., None]
        return np.concatenate([flat, np.ones_like(flat[..., :1])], axis=2).astype(np.float32)

    def project(self, points: Array) -> Array:
        """Pixels of points in the frame of the camera, [N, 3] to [N, 2]."""
        flat = points[:, :2] / points[:, 2:]
        u, v = flat.T
        r2 = u * u + v * v
        if self.fisheye:
            theta = np.arctan(np.sqrt(r2))
            bent = theta + sum(k * theta ** (2 * i + 3) for i, k in enumerate(self.coefficients))
            return self.focal * flat * (bent / np.sqrt(r2))[:, None] + self.center
        k1, k2, p1, p2, k3 = self.coefficients
        radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
        x = u * radial + 2 * p1 * u * v + p2 * (r2 + 2 * u * u)
        y = v * radial + p1 * (r2 + 2 * v * v) + 2 * p2 * u * v
        return self.focal * np.stack([x, y], axis=1) + self.center

    def photograph(
        self, texture: Image, texels_per_meter: float, rotation: Array, translation: Array
    ) -> Image:
        """The image of a textured plane; its origin is the texture's top left corner."""
        plane = np.column_stack([rotation[:, :2], translation])
        places = self.rays @ np.linalg.inv(plane).T.astype(np.float32)
        ahead = places[..., 2] > 0
        spots = places[..., :2] / np.where(ahead, places[..., 2], np.nan)[..., None]
        maps = np.nan_to_num(spots * texels_per_meter - 0.5, nan=-1e4).astype(np.float32)
        fine = cv2.remap(texture, maps[..., 0], maps[..., 1], cv2.INTER_LINEAR, borderValue=110)
        return cv2.resize(fine, self.size, interpolation=cv2.INTER_AREA).astype(np.uint8)


@dataclass(frozen=True)
class Rig:
    """Two cameras; `rotation` and `translation` (meters) lead from the left one's frame to the right's."""

    left: Camera
    right: Camera
    rotation: Array = field(default_factory=lambda: turned(0.4, -1.1, 0.3))
    translation: Array = field(default_factory=lambda: np.array([-0.06, 0.0006, -0.0004]))

    @property
    def baseline(self) -> float:
        return float(np.linalg.norm(self.translation))

    def photograph(
        self, texture: Image, texels_per_meter: float, rotation: Array, translation: Array
    ) -> tuple[Image, Image]:
        return (
            self.left.photograph(texture, texels_per_meter, rotation, translation),
            self.right.photograph(
                texture,
                texels_per_meter,
                self.rotation @ rotation,
                self.rotation @ translation + self.translation,
            ),
        )


def pinhole_rig(size: tuple[int, int] = (480, 360)) -> Rig:
    width, height = size
    return Rig(
        Camera(0.95 * width, (0.51 * width, 0.485 * height), (-0.21, 0.07, 0.0006, -0.0004, 0.0), size),
        Camera(0.96 * width, (0.492 * width, 0.507 * height), (-0.19, 0.05, -0.0005, 0.0003, 0.0), size),
    )


def fisheye_rig(size: tuple[int, int] = (480, 400)) -> Rig:
    width, height = size
    return Rig(
        Camera(0.36 * width, (0.505 * width, 0.49 * height), (0.02, -0.006, 0.002, -0.0004), size, True),
        Camera(0.362 * width, (0.495 * width, 0.505 * height), (0.018, -0.005, 0.001, -0.0003), size, True),
    )


def printed(pattern: Pattern) -> tuple[Image, float]:
    """The board on white paper, and the width of its white margin in meters."""
    margin = pattern.square_mm
    columns, rows = pattern.squares
    fine = 8 * TEXELS_PER_MM
    shape = [round((count * pattern.square_mm + 2 * margin) * fine) for count in (rows, columns)]
    paper = np.full(shape, 235, np.uint8)
    for left, top, width, height in black_rectangles(pattern):
        x0, x1 = (round((margin + edge) * fine) for edge in (left, left + width))
        y0, y1 = (round((margin + edge) * fine) for edge in (top, top + height))
        paper[y0:y1, x0:x1] = 25
    size = (shape[1] // 8, shape[0] // 8)
    return cv2.resize(paper, size, interpolation=cv2.INTER_AREA).astype(np.uint8), margin / 1000


def board_poses(
    count: int, seed: int, distance: tuple[float, float], spread: float
) -> list[tuple[Array, Array]]:
    """Rotations of the board, and positions of its center: tilted, and wandering over the field of view."""
    rng = np.random.default_rng(seed)
    poses = []
    for index in range(count):
        angle, tilt = 2 * np.pi * index / count, rng.uniform(15, 40)
        depth = rng.uniform(*distance)
        reach = spread * np.sqrt(rng.uniform(0.2, 1))
        center = depth * np.array([reach * np.cos(2.4 * index), 0.75 * reach * np.sin(2.4 * index), 1])
        center[0] += 0.03  # between the cameras
        axis = turned(tilt * np.cos(angle), tilt * np.sin(angle), 0)
        poses.append((axis @ turned(z=rng.uniform(-20, 20)), center))
    return poses


def photographs(
    rig: Rig,
    pattern: Pattern,
    poses: list[tuple[Array, Array]],
    seed: int = 0,
    blur: float = 0.6,
    noise: float = 2.0,
) -> list[tuple[Image, Image]]:
    """Photograph the board in each pose, with blur (sigma in pixels) and noise (gray levels)."""
    paper, margin = printed(pattern)
    rng = np.random.default_rng(seed)
    columns, rows = pattern.squares
    middle = np.array([columns, rows, 0]) * pattern.square_mm / 2000 + (margin, margin, 0)
    pairs = []
    for rotation, center in poses:
        both = rig.photograph(paper, TEXELS_PER_MM * 1000, rotation, center - rotation @ middle)
        first, second = (_developed(image, rng, blur, noise) for image in both)
        pairs.append((first, second))
    return pairs


@lru_cache(maxsize=2)
def photographed_chessboard(count: int) -> tuple[Rig, Pattern, tuple[tuple[Image, Image], ...]]:
    """A rig with distortion, and its photographs of a chessboard, which leaves the seventh right one."""
    rig, pattern = pinhole_rig(), Pattern.parse("chessboard:9x6", 25)
    poses = board_poses(count, 0, (0.45, 0.7), 0.28)
    return rig, pattern, tuple(photographs(rig, pattern, poses))


def seen_views(
    rig: Rig, pattern: Pattern, poses: list[tuple[Array, Array]], seed: int = 0, noise: float = 0.05
) -> Views:
    """What a perfect detector finds in such photographs, with noise in pixels; no image is rendered."""
    rng = np.random.default_rng(seed)
    width, height = rig.left.size
    middle = pattern.points.mean(axis=0)
    views = []
    for index, (rotation, center) in enumerate(poses):
        left = (pattern.points - middle) @ rotation.T + center
        sides: list[Corners | None] = []
        for camera, points in ((rig.left, left), (rig.right, left @ rig.rotation.T + rig.translation)):
            pixels = camera.project(points) + rng.normal(0, noise, (len(points), 2))
            inside = ((pixels > 0) & (pixels < (width - 1, height - 1))).all(axis=1)
            usable = inside.all() or (pattern.kind == "charuco" and inside.sum() >= 8)
            sides.append(Corners(pixels[inside], np.flatnonzero(inside), 2.0, False) if usable else None)
        views.append(View(f"{index:02d}", sides))
    blank = np.zeros((height, width, 3), np.uint8)
    return Views(pattern, (width, height), views, (blank, blank))


def _developed(image: Image, rng: np.random.Generator, blur: float, noise: float) -> Image:
    soft = cv2.GaussianBlur(image, (0, 0), blur) if blur > 0 else image
    grainy = soft + rng.normal(0, noise, image.shape)
    return np.clip(np.rint(grainy), 0, 255).astype(np.uint8)
