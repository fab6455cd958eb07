"""Sheets before a small camera, for tests of the renderer."""

from __future__ import annotations

import numpy as np

from aanet.synthetic import Surface
from aanet.synthetic.library import TextureLibrary
from aanet.synthetic.surfaces import Plane

SIZE = (72, 144)
SHIFT = np.array([[1.0, 0.0, 40.3], [0.0, 1.0, 40.6], [0.0, 0.0, 1.0]])
TILE = TextureLibrary(0).tile("clouds", 0)


def sheet(plane: Plane, mask: np.ndarray | None = None, texture=TILE, **more) -> Surface:
    """A surface over the whole view, or under a mask given on the left pixel grid."""
    if mask is None:
        return Surface(
            plane, np.ones((SIZE[0] + 80, SIZE[1] + 240), np.float32), SHIFT, texture, np.eye(3), **more
        )
    return Surface(plane, mask, np.eye(3), texture, np.eye(3), **more)


def grid(size: tuple[int, int] = SIZE) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.arange(size[1], dtype=np.float32), np.arange(size[0], dtype=np.float32))
    return x, y
