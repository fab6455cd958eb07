"""The part of a view that a surface can cover, and the left position of each of its pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aanet.synthetic.surfaces import Surface
from aanet.typing import FloatMap

Across = tuple[float, float, float]


@dataclass(frozen=True)
class Window:
    """A rectangle of a view and, for each of its pixels, the left position on one surface.

    That position is affine in the pixel (`across`), except on a curved surface seen from the right, where it
    is a map (`bent`).
    """

    x0: int
    y0: int
    x1: int
    y1: int
    across: Across | None  # left x = across · (column, row, 1), counted from the corner
    bent: FloatMap | None  # [h, w]

    @property
    def rows_columns(self) -> tuple[slice, slice]:
        """The rectangle as an index into a view."""
        return slice(self.y0, self.y1), slice(self.x0, self.x1)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in OpenCV's order."""
        return self.x1 - self.x0, self.y1 - self.y0

    @property
    def x(self) -> FloatMap:
        """Columns of the view, [1, w]."""
        return np.arange(self.x0, self.x1, dtype=np.float32)[None, :]

    @property
    def y(self) -> FloatMap:
        """Rows of the view, [h, 1]; the same in both views."""
        return np.arange(self.y0, self.y1, dtype=np.float32)[:, None]

    @cached_property
    def left_x(self) -> FloatMap:
        """Left positions, [h, w], or [1, w] where they do not depend on the row."""
        if self.bent is not None:
            return self.bent
        assert self.across is not None
        xx, xy, x1 = self.across
        width, height = self.size
        across = np.asarray(xx * np.arange(width) + x1, np.float32)[None, :]
        return across if xy == 0 else across + np.asarray(xy * np.arange(height), np.float32)[:, None]

    def corners(self) -> list[tuple[float, float]]:
        """Left positions of the four corner pixels: top left, top right, bottom left, bottom right."""
        columns, rows = self.x1 - self.x0 - 1, self.y1 - self.y0 - 1
        pixels = [(i, j) for j in (0, rows) for i in (0, columns)]
        if self.across is None:
            return [(float(self.left_x[j, i]), float(self.y0 + j)) for i, j in pixels]
        xx, xy, x1 = self.across
        return [(xx * i + xy * j + x1, float(self.y0 + j)) for i, j in pixels]

    def crop(self, x: int, y: int, width: int, height: int) -> Window:
        """Return a part of the window, given relative to its corner."""
        across, bent = self.across, self.bent
        if across is not None:
            across = (across[0], across[1], across[0] * x + across[1] * y + across[2])
        if bent is not None:
            bent = bent[y : y + height, x : x + width]
        x0, y0 = self.x0 + x, self.y0 + y
        return Window(x0, y0, x0 + width, y0 + height, across, bent)


def extent_of(surface: Surface, size: tuple[int, int], right: bool) -> tuple[int, int, int, int] | None:
    """Return the rectangle x0, y0, x1, y1 of the view that the surface can cover, or None."""
    if right and not surface.seen_by_right:
        return None
    x0, y0, x1, y1 = surface.right_box if right else surface.left_box
    x0, x1 = max(math.floor(x0), 0), min(math.ceil(x1) + 1, size[1])
    y0, y1 = max(math.floor(y0), 0), min(math.ceil(y1) + 1, size[0])
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def window_of(surface: Surface, size: tuple[int, int], right: bool) -> Window | None:
    """Return the window of the view that the surface can cover, or None."""
    extent = extent_of(surface, size, right)
    if extent is None:
        return None
    x0, y0, x1, y1 = extent
    if not right:
        return Window(x0, y0, x1, y1, (1.0, 0.0, float(x0)), None)
    if surface.relief is None:
        xx, xy, x = surface.plane.left_from_right()
        return Window(x0, y0, x1, y1, (xx, xy, xx * x0 + xy * y0 + x), None)
    columns = np.arange(x0, x1, dtype=np.float32)[None, :]
    return Window(x0, y0, x1, y1, None, surface.left_x(columns, np.arange(y0, y1, dtype=np.float32)[:, None]))


def disparity_in(surface: Surface, window: Window, right: bool) -> FloatMap:
    """Disparity of the surface at each pixel of the window, [h, w]."""
    if not right:
        return surface.disparity(window.x, window.y)
    if window.bent is not None:
        return window.bent - window.x  # the solution of the Newton steps
    return surface.plane.seen_from_right().disparity(window.x, window.y)
