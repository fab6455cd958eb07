"""A rendered sequence of known disparity: a textured plane, and a square that moves in front of it."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helpers.matching_network import textured_scene

HEIGHT, WIDTH = 96, 160
BACK, SIDE = 8, 36  # the disparity of the plane, and the size of the square
EDGE = 6  # pixels around the outline of the square that count as its edge


class Moment(NamedTuple):
    left: NDArray[np.uint8]
    right: NDArray[np.uint8]
    disparity: NDArray[np.float32]
    edge: NDArray[np.bool_]  # near the outline of the square
    still: NDArray[np.bool_]  # farther away from anything that moves in the whole sequence


def moving_square(frames: int, step: int = 2, noise: float = 0.0, front: int = 20) -> list[Moment]:
    """Frames in which a square of disparity `front` moves by `step` pixels each; noise is in gray levels."""
    rng = np.random.default_rng(0)
    behind = textured_scene(HEIGHT, WIDTH + front, 1)
    square = textured_scene(SIDE, SIDE, 2)
    top, starts = 30, 40 + step * np.arange(frames)
    still = np.ones((HEIGHT, WIDTH), bool)
    still[top - EDGE : top + SIDE + EDGE, starts[0] - front - EDGE : starts[-1] + SIDE + EDGE] = False
    still[:, : front + EDGE] = False  # the right camera does not see it
    moments = []
    for x in starts:
        left, right = behind[:, :WIDTH].copy(), behind[:, BACK : BACK + WIDTH].copy()
        rows = slice(top, top + SIDE)
        left[rows, x : x + SIDE] = square
        right[rows, x - front : x - front + SIDE] = square
        disparity = np.full((HEIGHT, WIDTH), BACK, np.float32)
        disparity[rows, x : x + SIDE] = front
        edge = np.zeros_like(still)
        edge[top - EDGE : top + SIDE + EDGE, x - EDGE : x + SIDE + EDGE] = True
        edge[top + EDGE : top + SIDE - EDGE, x + EDGE : x + SIDE - EDGE] = False
        pair = [np.clip(image + noise * rng.standard_normal(image.shape), 0, 255) for image in (left, right)]
        moments.append(Moment(*(np.rint(image).astype(np.uint8) for image in pair), disparity, edge, still))
    return moments


def flicker(maps: list[NDArray[np.float32]], still: NDArray[np.bool_]) -> float:
    """Mean absolute change from frame to frame where nothing moves, in pixels."""
    return float(np.mean([np.abs(b - a)[still].mean() for a, b in pairwise(maps)]))


def edge_error(maps: list[NDArray[np.float32]], moments: list[Moment]) -> float:
    """Mean absolute error at the moving edges, in pixels, without the first frame, which has no history."""
    pairs = list(zip(maps, moments, strict=True))[1:]
    return float(np.mean([np.abs(d - moment.disparity)[moment.edge].mean() for d, moment in pairs]))
