"""Outlines of objects: closed contours [N, 2] around the origin, y up, about one unit in size."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Contour = NDArray[np.float64]
Generator = np.random.Generator


def rectangle(width: float, height: float, x: float = 0.0, y: float = 0.0) -> Contour:
    """A rectangle centered on (x, y)."""
    w, h = width / 2, height / 2
    return np.array([[x - w, y - h], [x + w, y - h], [x + w, y + h], [x - w, y + h]])


def ellipse(rx: float, ry: float, x: float = 0.0, y: float = 0.0, points: int = 40) -> Contour:
    """An ellipse centered on (x, y)."""
    t = np.linspace(0, 2 * np.pi, points, endpoint=False)
    return np.stack([x + rx * np.cos(t), y + ry * np.sin(t)], 1)


def polygon(rng: Generator) -> Contour:
    """An irregular polygon of three to eight corners: paper, rock, shard."""
    n = int(rng.integers(3, 9))
    t = np.sort(2 * np.pi * (np.arange(n) + rng.uniform(-0.35, 0.35, n)) / n) + rng.uniform(0, 7)
    r = rng.uniform(0.6, 1.0, n)
    return np.stack([r * np.cos(t), r * np.sin(t)], 1)


def blob(rng: Generator, roughness: float = 0.3, points: int = 96) -> Contour:
    """A smooth closed curve: a circle with a few random harmonics."""
    t = np.linspace(0, 2 * np.pi, points, endpoint=False)
    r = np.ones(points)
    for k in range(1, 9):
        r += roughness * rng.normal() / k**1.2 * np.cos(k * t + rng.uniform(0, 7)) * 0.6
    r = np.clip(r, 0.25, 1.8)
    return np.asarray(np.stack([r * np.cos(t), r * np.sin(t)], 1) / r.max())


def foliage(rng: Generator) -> Contour:
    """A clump of leaves: a blob with a ragged outline."""
    points = 150
    tips = rng.uniform(0.82, 1.0, points)
    tips[::2] += rng.uniform(0.05, 0.25, len(tips[::2]))
    turn = rng.normal(0.0, 0.03, points)
    outline = blob(rng, 0.5, points) * tips[:, None]
    return np.stack([outline[:, 0] - turn * outline[:, 1], outline[:, 1] + turn * outline[:, 0]], 1)


def leaf(length: float, width: float, bend: float, angle: float) -> Contour:
    """A pointed leaf from the origin, curved by `bend`."""
    t = np.linspace(0, 1, 14)
    half = width / 2 * np.sin(np.pi * t**0.7)
    x, y = length * t, bend * length * t**2
    upper, lower = np.stack([x, y + half], 1), np.stack([x, y - half], 1)[::-1]
    return rotate(np.concatenate([upper, lower[1:-1]]), angle)


def rotate(contour: Contour, angle: float) -> Contour:
    """The contour turned counterclockwise."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.asarray(contour @ np.array([[cos, sin], [-sin, cos]]))


def moved(contour: Contour, x: float, y: float) -> Contour:
    """The contour shifted."""
    return np.asarray(contour + np.array([x, y]))


def bar(x0: float, y0: float, x1: float, y1: float, width: float) -> Contour:
    """A straight bar between two points."""
    half = width / 2 / max(math.hypot(x1 - x0, y1 - y0), 1e-9)
    u, v = -(y1 - y0) * half, (x1 - x0) * half  # across the bar
    return np.array([[x0 - u, y0 - v], [x1 - u, y1 - v], [x1 + u, y1 + v], [x0 + u, y0 + v]])


def strip(line: Contour, width: float) -> Contour:
    """A ribbon of constant width along a polyline."""
    along = np.gradient(line, axis=0)
    across = np.stack([-along[:, 1], along[:, 0]], 1)
    across *= width / 2 / np.maximum(np.hypot(across[:, 0], across[:, 1])[:, None], 1e-9)
    return np.concatenate([line + across, (line - across)[::-1]])


def wire(length: float, sag: float, width: float) -> Contour:
    """A hanging wire or cable."""
    t = np.linspace(-1, 1, 24)
    return strip(np.stack([t * length / 2, sag * (t**2 - 1)], 1), width)


def grid(columns: int, rows: int, width: float, height: float, thickness: float) -> list[Contour]:
    """Bars crossing at right angles: a basket, a window grille, a rack."""
    xs, ys = np.linspace(-width / 2, width / 2, columns), np.linspace(-height / 2, height / 2, rows)
    upright = [bar(x, -height / 2, x, height / 2, thickness) for x in xs]
    return upright + [bar(-width / 2, y, width / 2, y, thickness) for y in ys]


def fence(count: int, width: float, height: float, thickness: float) -> list[Contour]:
    """Palings and two rails, standing on y = 0."""
    xs = np.linspace(-width / 2, width / 2, count)
    rails = [bar(-width / 2, height * k, width / 2, height * k, thickness) for k in (0.2, 0.8)]
    return rails + [bar(x, 0, x, height, thickness) for x in xs]


def ring(radius: float, thickness: float, x: float = 0.0, y: float = 0.0) -> Contour:
    """A rim: one contour along the outer edge and back along the inner edge."""
    outside = ellipse(radius + thickness / 2, radius + thickness / 2, x, y, 41)
    inside = ellipse(radius - thickness / 2, radius - thickness / 2, x, y, 41)
    return np.concatenate([outside, outside[:1], inside[:1], inside[::-1]])


def wheel(radius: float, spokes: int, thickness: float, x: float = 0.0, y: float = 0.0) -> list[Contour]:
    """A rim with spokes."""
    t = np.arange(spokes) * 2 * np.pi / spokes
    lines = [bar(x, y, x + radius * np.cos(a), y + radius * np.sin(a), thickness * 0.3) for a in t]
    return [ring(radius, thickness, x, y), *lines]


def bicycle(thickness: float) -> list[Contour]:
    """Two wheels and a frame, about 1.7 wide, standing on y = 0."""
    wheels = wheel(0.33, 18, thickness, -0.5, 0.33) + wheel(0.33, 18, thickness, 0.5, 0.33)
    hub, head, seat, crank = (-0.5, 0.33), (0.35, 0.85), (-0.2, 0.9), (-0.05, 0.33)
    tubes = [(hub, seat), (hub, crank), (crank, seat), (crank, head), (seat, head), (head, (0.5, 0.33))]
    frame = [bar(*a, *b, thickness * 1.3) for a, b in tubes]
    return [
        *wheels,
        *frame,
        bar(0.3, 0.98, 0.48, 0.95, thickness),
        bar(-0.32, 0.95, -0.1, 0.95, thickness * 2),
    ]


def figure(rng: Generator) -> list[Contour]:
    """A standing person of height 1.75: head, trunk, arms and legs."""
    stride, reach = rng.uniform(0.05, 0.3), rng.uniform(0.1, 0.4)
    return [
        ellipse(0.11, 0.14, 0.0, 1.6),
        np.array([[-0.22, 1.42], [0.22, 1.42], [0.17, 0.8], [-0.17, 0.8]]),
        bar(-0.09, 0.85, -stride, 0.0, 0.15),
        bar(0.09, 0.85, stride, 0.0, 0.15),
        bar(-0.2, 1.38, -0.2 - reach, 0.85, 0.1),
        bar(0.2, 1.38, 0.2 + reach, 0.85, 0.1),
    ]


def bottle(rng: Generator) -> Contour:
    """A symmetric profile of height 1 on y = 0: bottle, vase, lamp."""
    levels = np.linspace(0, 1, 9)
    knots = rng.uniform(0.35, 1.0, 4)
    half = np.interp(levels, [0, 0.35, 0.7, 1.0], knots * [1.0, 1.0, 0.8, 0.55]) * rng.uniform(0.18, 0.4)
    fine = np.linspace(0, 1, 40)
    smooth = np.interp(fine, levels, half)
    smooth = np.convolve(np.pad(smooth, 3, mode="edge"), np.ones(7) / 7, mode="valid")
    return np.concatenate([np.stack([smooth, fine], 1), np.stack([-smooth, fine], 1)[::-1]])
