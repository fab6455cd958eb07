"""Surfaces of a stereo scene: geometry, mask, texture and shading.

Everything is a function of the position (x, y) of a surface point in the *left* view. Both views sample
the same mask, texture and shading, and only need that left position for each of their pixels. For a
pinhole camera, a plane in space, n·P = k, is a plane in disparity, d = a x + b y + c, and the left position
of a right pixel has a closed form; a curved surface adds a relief and needs a few Newton steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.typing import FloatMap

Matrix = NDArray[np.float64]
Box = tuple[float, float, float, float]  # x0, y0, x1, y1
NEWTON_STEPS = 4
RIM = 0.06  # keeps the slope at the rim of a dome finite; a true sphere is edge-on there
SOLVED = 1e-3  # px
MOST_HALVINGS = 5
STEEPEST = 0.97  # disparity per pixel; beyond it the surface is edge-on or back-facing for the right camera


@dataclass(frozen=True)
class Plane:
    """The plane d = a x + b y + c on the left pixel grid."""

    a: float
    b: float
    c: float

    def disparity(self, x: FloatMap, y: FloatMap) -> FloatMap:
        """Disparity where the left camera sees the surface at (x, y)."""
        return np.asarray(np.float32(self.a) * x + (np.float32(self.b) * y + np.float32(self.c)))

    def seen_from_right(self) -> Plane:
        """The same plane on the right pixel grid: d = (a x_right + b y + c) / (1 - a)."""
        k = 1.0 / (1.0 - self.a)
        return Plane(k * self.a, k * self.b, k * self.c)

    def left_from_right(self) -> tuple[float, float, float]:
        """Return the linear form on (right x, y, 1) that gives the left position of the same surface point.

        x_left = x_right + d and d = a x_left + b y + c, hence x_left = (x_right + b y + c) / (1 - a).
        """
        k = 1.0 / (1.0 - self.a)
        return k, k * self.b, k * self.c


class Relief(Protocol):
    """The offset of a curved surface from its plane, in pixels of disparity."""

    def height_and_slope(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap]:
        """Height and its derivative in x at left positions (x, y)."""
        ...

    def gradient(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap]:
        """The derivatives in x and y at left positions (x, y)."""
        ...

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest height."""
        ...


@dataclass(frozen=True)
class Dome:
    """A ball (two finite radii) or a cylinder (`along` infinite), highest at its center, 0 at its rim."""

    x: float
    y: float
    across: float  # radius in pixels, in x
    along: float  # radius in pixels, in y
    height: float

    def height_and_slope(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap]:
        """Height of an ellipsoid and its derivative in x."""
        root, bend, along_x, _ = self._profile(x, y)
        root -= np.float32(math.sqrt(RIM))
        root *= np.float32(self._scale())
        return root, np.multiply(bend, along_x, out=bend)

    def gradient(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap]:
        """The derivatives in x and y."""
        _, bend, along_x, along_y = self._profile(x, y)
        return along_x * bend, along_y * bend

    def _profile(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap, FloatMap, FloatMap]:
        """sqrt(1 + rim - r²) where r < 1, and three factors: the first times either other is a derivative."""
        dx, dy = x - np.float32(self.x), y - np.float32(self.y)
        along_x, along_y = dx * np.float32(self.across**-2), dy * np.float32(self.along**-2)
        radius = np.asarray(dx * along_x + dy * along_y)
        bend = (radius < 1.0) * np.float32(-self._scale())
        np.clip(radius, np.float32(0.0), np.float32(1.0), out=radius)
        root = np.sqrt(np.subtract(np.float32(1.0 + RIM), radius, out=radius), out=radius)
        bend /= root
        return root, bend, along_x, along_y

    def _scale(self) -> float:
        return self.height / (math.sqrt(1.0 + RIM) - math.sqrt(RIM))

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest height."""
        return min(0.0, self.height), max(0.0, self.height)

    @staticmethod
    def steepest_height(radius: float, slope: float) -> float:
        """The largest height for which the slope stays below `slope` everywhere."""
        return slope * radius * math.sqrt(RIM) * (math.sqrt(1.0 + RIM) - math.sqrt(RIM))


@dataclass(frozen=True)
class Folds:
    """A few waves, as in hanging cloth or rolling ground: sum of A sin(k·p + phase)."""

    waves: NDArray[np.float64]  # [N, 4]: amplitude, kx, ky, phase

    def height_and_slope(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap]:
        """Height of the waves and its derivative in x."""
        height: FloatMap = np.zeros(np.broadcast(x, y).shape, np.float32)
        slope = np.zeros_like(height)
        for amplitude, kx, ky, phase in self.waves.astype(np.float32):
            cos, sin = _circle(kx * x + (ky * y + phase))
            height += np.multiply(sin, amplitude, out=sin)
            slope += np.multiply(cos, amplitude * kx, out=cos)
        return height, slope

    def gradient(self, x: FloatMap, y: FloatMap) -> tuple[FloatMap, FloatMap]:
        """The derivatives in x and y."""
        gx: FloatMap = np.zeros(np.broadcast(x, y).shape, np.float32)
        gy = np.zeros_like(gx)
        for amplitude, kx, ky, phase in self.waves.astype(np.float32):
            cos, _ = _circle(kx * x + (ky * y + phase))
            gx += (amplitude * kx) * cos
            gy += (amplitude * ky) * cos
        return gx, gy

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest height the waves could reach together."""
        reach = float(np.abs(self.waves[:, 0]).sum())
        return -reach, reach


def _circle(angle: FloatMap) -> tuple[FloatMap, FloatMap]:
    """Return cosine and sine with OpenCV, as exact as NumPy's and four times as fast."""
    cos, sin = cv2.polarToCart(None, angle)  # type: ignore[call-overload]  # None = radius 1
    return np.asarray(cos, np.float32).reshape(angle.shape), np.asarray(sin, np.float32).reshape(angle.shape)


@dataclass(frozen=True)
class Gloss:
    """A highlight: the reflection of a lamp, which has its own disparity."""

    x: float  # position in the left view
    y: float
    disparity: float
    width: float
    height: float
    strength: float


@dataclass(frozen=True)
class Shading:
    """Light on a surface: a color, a linear falloff over it, and the effect of its curvature."""

    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    falloff: tuple[float, float] = (0.0, 0.0)  # per pixel of left position, around `center`
    center: tuple[float, float] = (0.0, 0.0)
    relief: tuple[float, float] = (0.0, 0.0)  # weight of the relief's gradient in x and y


class Texture:
    """An RGBA image, repeated by mirroring, with mipmaps; or one flat color if the image is 1×1.

    The fourth channel is unused: OpenCV warps four channels more than twice as fast as three.
    """

    def __init__(self, image: NDArray[np.uint8]) -> None:
        self.image = image  # [H, W, 4]
        self.flat = image.shape[:2] == (1, 1)
        self.coarsest = min(MOST_HALVINGS, max(min(image.shape[:2]).bit_length() - 4, 0))
        self._levels = [image]

    def level(self, number: int) -> NDArray[np.uint8]:
        """Return the image halved `number` times, created on first use."""
        levels = self._levels
        if number >= len(levels):
            levels = levels.copy()  # concurrent threads compute equal levels, each in its own list
            while number >= len(levels):
                height, width = levels[-1].shape[:2]
                size = ((width + 1) // 2, (height + 1) // 2)
                levels.append(
                    np.asarray(cv2.resize(levels[-1], size, interpolation=cv2.INTER_AREA), np.uint8)
                )
            self._levels = levels
        return levels[number]


@dataclass(frozen=True)
class Reflection:
    """Surroundings reflected in paint or glass: an image that appears behind the surface."""

    texture: Texture
    texture_from_left: Matrix  # 3×3: scale and shift
    disparity: float
    strength: float  # 0..1, the rest is the surface's own color


@dataclass(frozen=True)
class Surface:
    """One sheet of a scene.

    Sheets of one `group` form a convex body or the inside of a room: they share edges and never occlude
    each other. A `decal` is on the previous sheet (a picture on a wall, a shadow on the floor) and
    changes only the color.
    """

    plane: Plane
    mask: FloatMap  # coverage 0..1 on its own grid
    mask_from_left: Matrix  # 3×3: scale and shift
    texture: Texture
    texture_from_left: Matrix  # 3×3 homography
    shading: Shading = field(default_factory=Shading)
    relief: Relief | None = None
    gloss: Gloss | None = None
    reflection: Reflection | None = None
    group: int = -1  # -1: on its own
    decal: bool = False
    opacity: float = 1.0  # below 1 for shadows only

    @cached_property
    def left_box(self) -> Box:
        """Bounding box of the mask in the left view."""
        h, w = self.mask.shape
        (sx, _, tx), (_, sy, ty), _ = self.mask_from_left.tolist()
        return -tx / sx, -ty / sy, (w - 1 - tx) / sx, (h - 1 - ty) / sy

    @cached_property
    def right_box(self) -> Box:
        """Bounding box of the mask in the right view."""
        x0, y0, x1, y1 = self.left_box
        low, high = (0.0, 0.0) if self.relief is None else self.relief.bounds()
        a, b, c = self.plane.a, self.plane.b, self.plane.c
        moved = [x - (a * x + b * y + c) for x in (x0, x1) for y in (y0, y1)]
        return min(moved) - high, y0, max(moved) - low, y1

    @cached_property
    def solid(self) -> bool:
        """Whether the mask has no hole and no edge within its grid."""
        return bool(self.mask.min() == 1.0)

    @property
    def seen_by_right(self) -> bool:
        """Whether the right camera is on the same side of the surface as the left one."""
        return self.plane.a < STEEPEST

    def disparity(self, x: FloatMap, y: FloatMap) -> FloatMap:
        """Disparity where the left camera sees the surface at (x, y)."""
        flat = self.plane.disparity(x, y)
        return flat if self.relief is None else flat + self.relief.height_and_slope(x, y)[0]

    def left_x(self, right_x: FloatMap, y: FloatMap) -> FloatMap:
        """Left position of the surface point that the right camera sees at (right_x, y)."""
        plane = self.plane
        x = right_x + plane.seen_from_right().disparity(right_x, y)
        if self.relief is None:
            return x
        # Newton on x - d(x) - right_x = 0, which is monotone because every slope stays below one.
        for _ in range(NEWTON_STEPS):
            height, slope = self.relief.height_and_slope(x, y)
            excess = x - plane.disparity(x, y)
            excess -= height
            excess -= right_x
            np.subtract(np.float32(1.0 - plane.a), slope, out=slope)
            np.clip(slope, np.float32(0.15), np.float32(9.0), out=slope)
            x = x - np.divide(excess, slope, out=slope)
            if cv2.norm(excess, cv2.NORM_INF) < SOLVED:
                break  # Newton converges quadratically, so the last step was enough
        return x


@dataclass(frozen=True)
class Scene:
    """Surfaces from back to front, and the size of the views."""

    kind: str
    size: tuple[int, int]
    surfaces: tuple[Surface, ...]
