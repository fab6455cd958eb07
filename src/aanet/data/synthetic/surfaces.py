"""Surfaces of a stereo scene: where they are, how they are cut out and what covers them.

Everything is a function of the point (x, y) where the *left* camera sees a surface point, so both views
sample the same mask, texture and shading, and only have to know that left position for each of their pixels.
Under a pinhole a plane in space, n·P = k, is a plane in disparity, d = a x + b y + c, and the right view's
left position has a closed form; a curved surface adds a relief and needs a few Newton steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import FloatMap

Matrix = NDArray[np.float64]
NEWTON_STEPS = 6
STEEPEST = 0.97  # disparity per pixel; beyond it the right camera sees the surface edge-on or from behind


@dataclass(frozen=True)
class Plane:
    """The plane d = a x + b y + c on the left pixel grid."""

    a: float
    b: float
    c: float

    def disparity(self, x: FloatMap, y: FloatMap) -> FloatMap:
        """Disparity where the left camera sees the surface at (x, y)."""
        return np.asarray(self.a * x + (self.b * y + self.c), np.float32)

    def left_from_right(self) -> Matrix:
        """The 3×3 map from a right pixel to the left position of the same surface point.

        x_left = x_right + d and d = a x_left + b y + c, hence x_left = (x_right + b y + c) / (1 - a).
        """
        k = 1.0 / (1.0 - self.a)
        return np.array([[k, k * self.b, k * self.c], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


class Relief(Protocol):
    """What a curved surface adds to its plane, in pixels of disparity."""

    def evaluate(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap, FloatMap]:
        """Height and its two derivatives at left positions (x, y)."""
        ...

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest height."""
        ...


@dataclass(frozen=True)
class Dome:
    """A ball (two finite radii) or a cylinder (`along` infinite), highest at its centre, 0 at its rim."""

    x: float
    y: float
    across: float  # radius in pixels, along the direction of `angle`
    along: float  # radius in pixels, perpendicular to it
    angle: float
    height: float
    rim: float = 0.06  # keeps the slope at the rim finite: a true sphere turns away from both cameras

    def evaluate(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap, FloatMap]:
        """Height of an ellipsoid and its gradient."""
        cos, sin = np.float32(np.cos(self.angle)), np.float32(np.sin(self.angle))
        dx, dy = x - np.float32(self.x), y - np.float32(self.y)
        u = (cos * dx + sin * dy) / np.float32(self.across)
        v = (cos * dy - sin * dx) / np.float32(self.along)
        radius = u * u + v * v
        root = np.sqrt(np.float32(1.0 + self.rim) - np.minimum(radius, np.float32(1.0)))
        low, scale = np.float32(np.sqrt(self.rim)), np.float32(self._scale())
        slope = np.where(radius < 1.0, -scale / root, np.float32(0.0))
        gx = slope * (u * cos / np.float32(self.across) - v * sin / np.float32(self.along))
        gy = slope * (u * sin / np.float32(self.across) + v * cos / np.float32(self.along))
        return (root - low) * scale, gx, gy

    def _scale(self) -> float:
        return float(self.height / (np.sqrt(1.0 + self.rim) - np.sqrt(self.rim)))

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest height."""
        return min(0.0, self.height), max(0.0, self.height)

    @staticmethod
    def steepest_height(radius: float, slope: float, rim: float = 0.06) -> float:
        """The largest height for which the slope stays below `slope` everywhere."""
        return float(slope * radius * np.sqrt(rim) * (np.sqrt(1.0 + rim) - np.sqrt(rim)))


@dataclass(frozen=True)
class Folds:
    """A few waves, as in hanging cloth or rolling ground: sum of A sin(k·p + phase)."""

    waves: NDArray[np.float64]  # [N, 4]: amplitude, kx, ky, phase

    def evaluate(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap, FloatMap]:
        """Height of the waves and its gradient."""
        height: FloatMap = np.zeros(np.broadcast(x, y).shape, np.float32)
        gx, gy = np.zeros_like(height), np.zeros_like(height)
        for amplitude, kx, ky, phase in self.waves.astype(np.float32):
            angle = kx * x + (ky * y + phase)
            height += amplitude * np.sin(angle)
            swing = amplitude * np.cos(angle)
            gx += kx * swing
            gy += ky * swing
        return height, gx, gy

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest height the waves could reach together."""
        reach = float(np.abs(self.waves[:, 0]).sum())
        return -reach, reach


@dataclass(frozen=True)
class Gloss:
    """A highlight: the mirror image of a lamp, with its own disparity, so it slides over the surface."""

    x: float  # where the left camera sees it
    y: float
    disparity: float
    width: float
    height: float
    strength: float


@dataclass(frozen=True)
class Shading:
    """Light on a surface: a colour, a linear falloff over it, and the effect of its curvature."""

    colour: tuple[float, float, float] = (1.0, 1.0, 1.0)
    falloff: tuple[float, float] = (0.0, 0.0)  # per pixel of left position, around `centre`
    centre: tuple[float, float] = (0.0, 0.0)
    relief: tuple[float, float] = (0.0, 0.0)  # weight of the relief's gradient in x and y


@dataclass(frozen=True)
class Texture:
    """An RGB picture and its halvings, repeated by mirroring; or one flat colour when the picture is 1×1."""

    levels: tuple[NDArray[np.uint8], ...]


@dataclass(frozen=True)
class Surface:
    """One sheet of a scene.

    Sheets of one `group` form a convex body or the inside of a room: they share edges and never hide each
    other.  A `decal` lies on the sheet before it (a picture on a wall, a shadow on the floor): it changes the
    colour and nothing else.
    """

    plane: Plane
    mask: FloatMap  # coverage 0..1 on its own grid
    mask_from_left: Matrix  # 3×3, affine
    texture: Texture
    texture_from_left: Matrix  # 3×3 homography
    shading: Shading = field(default_factory=Shading)
    relief: Relief | None = None
    gloss: Gloss | None = None
    group: int = -1  # -1: on its own
    decal: bool = False
    opacity: float = 1.0  # below 1 for shadows only

    @cached_property
    def corners(self) -> tuple[Matrix, Matrix]:
        """Left positions x [4] and y [4] of the corners of the mask."""
        h, w = self.mask.shape
        grid = np.array([[0.0, w - 1, 0.0, w - 1], [0.0, 0.0, h - 1, h - 1], [1.0, 1.0, 1.0, 1.0]])
        corners = np.linalg.solve(self.mask_from_left, grid)
        return corners[0], corners[1]

    @property
    def seen_by_right(self) -> bool:
        """Whether the right camera is on the same side of the surface as the left one."""
        return self.plane.a < STEEPEST

    def disparity(self, x: FloatMap, y: FloatMap) -> FloatMap:
        """Disparity where the left camera sees the surface at (x, y)."""
        flat = self.plane.disparity(x, y)
        return flat if self.relief is None else flat + self.relief.evaluate(x, y)[0]

    def left_x(self, right_x: FloatMap, y: FloatMap) -> FloatMap:
        """Left position of the surface point that the right camera sees at (right_x, y)."""
        plane = self.plane
        k = 1.0 / (1.0 - plane.a)
        x = np.asarray(k * right_x + (k * plane.b * y + k * plane.c), np.float32)
        if self.relief is None:
            return x
        # Newton on x - d(x) - right_x = 0, which is monotone because every slope stays below one.
        for _ in range(NEWTON_STEPS):
            height, slope, _ = self.relief.evaluate(x, y)
            excess = x - plane.disparity(x, y) - height - right_x
            x = x - excess / np.maximum(np.float32(1.0 - plane.a) - slope, np.float32(0.15))
        return x


@dataclass(frozen=True)
class Scene:
    """Surfaces from back to front, and the size of the views."""

    kind: str
    size: tuple[int, int]
    surfaces: tuple[Surface, ...]
