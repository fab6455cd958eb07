"""Procedural textures: each generator paints one 512×512 RGB tile from a random generator."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.typing import FloatMap, Image

SIZE = 512
Color = NDArray[np.float32]
Generator = np.random.Generator


def hue_color(rng: Generator, saturation: float = 0.5, low: float = 0.2, high: float = 0.9) -> Color:
    """Draw a color in 0..1, mostly of low saturation, as on real surfaces."""
    value = rng.uniform(low, high)
    # Earth, wood, brick and skin tones are more frequent than other hues.
    hue = rng.normal(0.07, 0.05) if rng.random() < 0.55 else rng.random()
    pure = np.clip(np.abs((hue + np.array([0.0, 2 / 3, 1 / 3])) % 1.0 * 6 - 3) - 1, 0, 1)
    s = saturation * rng.random()
    return np.asarray(value * (1 - s + s * pure), np.float32)


def fractal_noise(
    rng: Generator, cells: int = 4, octaves: int = 5, persistence: float = 0.55, stretch: float = 1.0
) -> FloatMap:
    """Smooth noise in 0..1: octaves of random grids, enlarged by cubic interpolation, [512, 512]."""
    total: FloatMap = np.zeros((SIZE, SIZE), np.float32)
    weight = 1.0
    for octave in range(octaves):
        n = cells * 2**octave
        shape = (min(max(2, round(n / stretch)), SIZE), min(max(2, round(n * stretch)), SIZE))
        grid = rng.random(shape, dtype=np.float32)
        total += np.float32(weight) * cv2.resize(grid, (SIZE, SIZE), interpolation=cv2.INTER_CUBIC)
        weight *= persistence
    low, high = float(total.min()), float(total.max())
    return np.asarray((total - np.float32(low)) / np.float32(high - low + 1e-6))


def ramp(values: FloatMap, colors: list[Color]) -> Image:
    """Color a 0..1 map by a ramp through `colors`."""
    position = np.linspace(0.0, 1.0, len(colors))
    table = np.stack(
        [np.interp(np.linspace(0, 1, 256), position, [c[k] for c in colors]) for k in range(3)], 1
    )
    index = np.clip(values * 255.0, 0, 255).astype(np.uint8)
    return np.asarray((np.clip(table, 0, 1) * 255).astype(np.uint8)[index])


def _grain(rng: Generator, image: Image, strength: float) -> Image:
    """Add fine noise, so that no painted area is perfectly uniform."""
    if strength == 0:
        return image
    grain = rng.standard_normal((SIZE, SIZE), np.float32) * np.float32(255.0 * 1.8 * strength)
    soft = cv2.GaussianBlur(grain, (5, 5), 0.8)
    return np.asarray(cv2.add(image, cv2.merge([soft] * 3), dtype=cv2.CV_8U), np.uint8)


def _paint(color: Color) -> tuple[float, float, float]:
    r, g, b = (float(np.clip(c * 255, 0, 255)) for c in color)
    return r, g, b


def _canvas(color: Color) -> Image:
    return np.tile(np.asarray(np.clip(color * 255, 0, 255), np.uint8), (SIZE, SIZE, 1))


def plain(rng: Generator) -> Image:
    """Painted wall: almost textureless, as in real rooms."""
    base = hue_color(rng, 0.35, 0.45, 0.95)
    contrast = rng.choice([0.0, 0.02, 0.06])
    noise = fractal_noise(rng, 2, 3) - np.float32(0.5)
    image = ramp(0.5 + noise, [base - np.float32(contrast / 2), base + np.float32(contrast / 2)])
    return _grain(rng, image, rng.choice([0.0, 0.004, 0.012]))


def clouds(rng: Generator) -> Image:
    """Stone, stucco, earth: fractal noise through a ramp of related colors."""
    base = hue_color(rng, 0.6)
    colors = [np.clip(base * rng.uniform(0.35, 1.5), 0, 1).astype(np.float32) for _ in range(4)]
    return ramp(fractal_noise(rng, int(rng.integers(2, 9)), 7, rng.uniform(0.55, 0.8)), colors)


def speckle(rng: Generator) -> Image:
    """Asphalt, carpet, granite: contrast at the scale of a few texels."""
    noise = 0.6 * fractal_noise(rng, 64, 4, 0.9) + 0.4 * fractal_noise(rng, 4, 4)
    base = hue_color(rng, 0.3, 0.2, 0.7)
    return ramp(noise, [base * 0.35, base, np.clip(base * 1.7, 0, 1)])


def wood(rng: Generator) -> Image:
    """Grain along x: growth rings distorted by stretched noise."""
    bend = fractal_noise(rng, 3, 4, 0.5, stretch=0.4)
    y = np.linspace(0, 1, SIZE, dtype=np.float32)[:, None]
    rings = np.sin((y * rng.uniform(8, 25) + bend * rng.uniform(2, 7)) * np.float32(2 * np.pi))
    fine = fractal_noise(rng, 16, 5, 0.8, stretch=0.3)
    base = np.array([rng.uniform(0.45, 0.8), rng.uniform(0.28, 0.5), rng.uniform(0.12, 0.3)], np.float32)
    return ramp(0.35 + 0.15 * rings + 0.5 * (fine - 0.25), [base * 0.45, base, np.clip(base * 1.4, 0, 1)])


def planks(rng: Generator) -> Image:
    """A wooden floor: boards of `wood` with their own shade and dark joints."""
    image = wood(rng).astype(np.float32)
    board = int(rng.choice([32, 48, 64]))
    for top in range(0, SIZE, board):
        image[top : top + board] = np.roll(image[top : top + board], int(rng.integers(SIZE)), axis=1)
        image[top : top + board] *= rng.uniform(0.75, 1.15)
        image[top : top + 2] *= 0.45
        joint = int(rng.integers(SIZE))
        image[top : top + board, joint : joint + 2] *= 0.45
    return np.clip(image, 0, 255).astype(np.uint8)


def bricks(rng: Generator) -> Image:
    """Courses of bricks in mortar, each brick with its own shade."""
    high, wide = int(rng.choice([16, 24, 32])), int(rng.choice([48, 64, 96]))
    base, mortar = hue_color(rng, 0.9, 0.3, 0.75), hue_color(rng, 0.1, 0.4, 0.85)
    image = _canvas(mortar)
    for row, top in enumerate(range(0, SIZE, high)):
        for left in range(-(row % 2) * wide // 2, SIZE, wide):
            shade = _paint(base * rng.uniform(0.7, 1.25))
            cv2.rectangle(image, (left + 2, top + 2), (left + wide - 2, top + high - 2), shade, -1)
    return _modulate(image, fractal_noise(rng, 16, 5, 0.7), 0.5)


def tiles(rng: Generator) -> Image:
    """Square tiles, checkered or plain, with joints."""
    side = int(rng.choice([24, 32, 48, 64]))
    pair = [hue_color(rng, 0.5, 0.3, 0.95), hue_color(rng, 0.5, 0.2, 0.95)]
    if rng.random() < 0.5:
        pair[1] = pair[0] * np.float32(rng.uniform(0.9, 1.0))
    joint = _paint(hue_color(rng, 0.1, 0.2, 0.7))
    image = _canvas(pair[0])
    for i, top in enumerate(range(0, SIZE, side)):
        for j, left in enumerate(range(0, SIZE, side)):
            shade = _paint(pair[(i + j) % 2] * rng.uniform(0.92, 1.08))
            cv2.rectangle(image, (left, top), (left + side, top + side), shade, -1)
            cv2.rectangle(image, (left, top), (left + side, top + side), joint, 1, cv2.LINE_AA)
    return _modulate(image, fractal_noise(rng, 4, 5), 0.25)


def stripes(rng: Generator) -> Image:
    """Wallpaper and cloth: exactly periodic bands, which are ambiguous for matching."""
    period = float(rng.choice([12, 20, 32, 50]))
    count = int(rng.integers(2, 5))
    colors = [hue_color(rng, 0.7, 0.25, 0.95) for _ in range(count)]
    phase = (np.arange(SIZE) / period * count).astype(np.int64) % count
    band = np.stack(colors)[phase]  # [W, 3]
    image = np.broadcast_to(np.asarray(band * 255, np.uint8), (SIZE, SIZE, 3)).copy()
    image = np.asarray(cv2.GaussianBlur(image, (0, 0), 0.7), np.uint8)
    return _modulate(image, fractal_noise(rng, 3, 4), rng.choice([0.05, 0.2]))


def dots(rng: Generator) -> Image:
    """A printed pattern: one motif on a regular grid."""
    step = int(rng.choice([16, 24, 36, 52]))
    image = _canvas(hue_color(rng, 0.6, 0.4, 0.95))
    motif, core = _paint(hue_color(rng, 0.9)), _paint(hue_color(rng, 0.9))
    radius = step * rng.uniform(0.15, 0.4)
    sides = int(rng.choice([3, 4, 5, 24]))
    angles = np.arange(sides) * 2 * np.pi / sides
    shape = np.stack([np.cos(angles), np.sin(angles)], 1)
    for row, y in enumerate(range(0, SIZE + step, step)):
        for x in range((row % 2) * step // 2, SIZE + step, step):
            for scale, color in ((1.0, motif), (0.45, core)):
                points = np.round((shape * radius * scale + (x, y)) * 16).astype(np.int32)
                cv2.fillPoly(image, [points], color, cv2.LINE_AA, shift=4)
    return _modulate(image, fractal_noise(rng, 3, 4), 0.15)


def cobbles(rng: Generator) -> Image:
    """Stones: cells of a jittered grid, darker toward their borders."""
    n = int(rng.integers(10, 26))
    jitter = rng.uniform(0.1, 0.9, (n, n, 2))
    points = ((np.stack(np.meshgrid(np.arange(n), np.arange(n)), -1) + jitter) * SIZE / n).reshape(-1, 2)
    seeds = np.full((SIZE, SIZE), 255, np.uint8)
    columns, rows = np.clip(points.astype(np.int64), 0, SIZE - 1).T
    seeds[rows, columns] = 0
    _, labels = cv2.distanceTransformWithLabels(seeds, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    shade = rng.uniform(0.55, 1.1, labels.max() + 1).astype(np.float32)[labels]
    joints = np.asarray(cv2.morphologyEx(shade, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0.0)
    shade = cv2.GaussianBlur(np.where(joints, np.float32(0.25), shade), (0, 0), 1.0)
    base = hue_color(rng, 0.3, 0.4, 0.8)
    image = np.clip(base * shade[..., None] * 255, 0, 255).astype(np.uint8)
    return _modulate(image, fractal_noise(rng, 24, 5, 0.75), 0.6)


def weave(rng: Generator) -> Image:
    """Coarse cloth: two crossing waves of thread and folds of color."""
    period = rng.uniform(4, 10)
    t = np.arange(SIZE, dtype=np.float32) * np.float32(2 * np.pi / period)
    threads = 0.25 * np.sin(t)[None, :] + 0.25 * np.sin(t)[:, None] + 0.5
    noise = fractal_noise(rng, 8, 6, 0.75)
    base = hue_color(rng, 0.8, 0.3, 0.8)
    return ramp(0.5 * threads + 0.5 * noise, [base * 0.4, base, np.clip(base * 1.6, 0, 1)])


def grass(rng: Generator) -> Image:
    """Blades or foliage: thousands of short strokes in a few greens."""
    base = np.array([rng.uniform(0.15, 0.5), rng.uniform(0.3, 0.6), rng.uniform(0.08, 0.25)], np.float32)
    image = _canvas(base * 0.4)
    count, length = 3500, rng.uniform(6, 22)
    starts = rng.uniform(0, SIZE, (count, 2))
    angles = rng.normal(-np.pi / 2, rng.choice([0.4, 2.0]), count)
    ends = starts + length * np.stack([np.cos(angles), np.sin(angles)], 1)
    strokes = np.stack([starts, ends], 1).astype(np.int32)  # [N, 2, 2]
    thickness = int(rng.choice([1, 2, 3]))
    for part in np.array_split(strokes, 20):
        cv2.polylines(image, list(part), False, _paint(base * rng.uniform(0.4, 1.7)), thickness, cv2.LINE_AA)
    return image


def sky(rng: Generator) -> Image:
    """Blue, hazy or overcast, paler toward the bottom, with or without clouds."""
    zenith = np.array([0.35, 0.55, 0.85]) * rng.uniform(0.7, 1.1) + rng.uniform(0.0, 0.35)
    haze = np.array([0.85, 0.9, 0.95]) * rng.uniform(0.85, 1.1)
    height = np.linspace(0, 1, SIZE, dtype=np.float32)[:, None]
    cover = np.clip(fractal_noise(rng, 2, 6, 0.55, stretch=0.7) * rng.choice([0.0, 0.6, 1.6]) - 0.3, 0, 1)
    return ramp(np.clip(height + cover, 0, 1), [zenith.astype(np.float32), haze.astype(np.float32)])


def print_(rng: Generator) -> Image:
    """Paper, labels, book covers: lines of words on a light page with a few blocks of color."""
    image = _canvas(hue_color(rng, 0.2, 0.75, 1.0))
    for _ in range(int(rng.integers(1, 5))):
        x, y = (int(v) for v in rng.integers(0, SIZE, 2))
        w, h = (int(v) for v in rng.integers(40, 200, 2))
        cv2.rectangle(image, (x, y), (x + w, y + h), _paint(hue_color(rng, 0.9)), -1)
    ink, letters = (
        _paint(hue_color(rng, 0.6, 0.0, 0.3)),
        np.array(list("abcdefghiklmnoprstuvwxyz ABCDEGHR 123 ")),
    )
    y = 0
    while y < SIZE:
        size = float(rng.choice([0.35, 0.45, 0.7, 1.2], p=[0.4, 0.3, 0.2, 0.1]))
        y += int(14 + 26 * size)
        text = "".join(rng.choice(letters, 90))
        cv2.putText(
            image, text, (int(rng.integers(-60, 40)), y), 0, size, ink, 1 + int(size > 0.6), cv2.LINE_AA
        )
    return image


def facade(rng: Generator) -> Image:
    """A house front: plaster or brick, with rows of equal windows."""
    image = bricks(rng) if rng.random() < 0.4 else _grain(rng, plain(rng), 0.02)
    step_x, step_y = int(rng.choice([64, 85, 128])), int(rng.choice([85, 102, 128]))
    w, h = int(step_x * rng.uniform(0.35, 0.65)), int(step_y * rng.uniform(0.45, 0.7))
    frame, glass = _paint(hue_color(rng, 0.2, 0.5, 1.0)), hue_color(rng, 0.4, 0.08, 0.35)
    for top in range(step_y // 5, SIZE, step_y):
        for left in range(step_x // 5, SIZE, step_x):
            corner = (left + w, top + h)
            cv2.rectangle(image, (left, top), corner, _paint(glass * rng.uniform(0.6, 1.8)), -1)
            cv2.rectangle(image, (left, top), corner, frame, 3)
            cv2.line(image, (left + w // 2, top), (left + w // 2, top + h), frame, 2)
            cv2.line(image, (left, top + h // 3), (left + w, top + h // 3), frame, 2)
            cv2.rectangle(image, (left - 4, top + h + 2), (left + w + 4, top + h + 6), frame, -1)
    return _modulate(image, fractal_noise(rng, 4, 6, 0.7), 0.3)


def dead_leaves(rng: Generator) -> Image:
    """Overlapping discs with power-law radii: the edge statistics of natural images."""
    image = clouds(rng)
    palette = [hue_color(rng, 0.9, 0.1, 0.95) for _ in range(6)]
    for _ in range(300):
        radius = min(7.0 / np.sqrt(rng.random() + 0.002), 90.0)
        center = tuple(int(v) for v in rng.uniform(0, SIZE, 2))
        axes = (int(radius), int(radius * rng.uniform(0.3, 1.0)) + 1)
        color = _paint(palette[rng.integers(6)] * rng.uniform(0.7, 1.3))
        cv2.ellipse(image, center, axes, rng.uniform(0, 180), 0, 360, color, -1, cv2.LINE_AA)
    return _modulate(image, fractal_noise(rng, 16, 5, 0.8), 0.4)


def _modulate(image: Image, noise: FloatMap, strength: float) -> Image:
    """Multiply by noise around one, for dirt and wear."""
    factor = np.float32(1.0 - strength / 2) + np.float32(strength) * noise
    return np.asarray(cv2.multiply(image, cv2.merge([factor] * 3), dtype=cv2.CV_8U), np.uint8)


GENERATORS: dict[str, Callable[[Generator], Image]] = {
    "plain": plain,
    "clouds": clouds,
    "speckle": speckle,
    "wood": wood,
    "planks": planks,
    "bricks": bricks,
    "tiles": tiles,
    "stripes": stripes,
    "dots": dots,
    "cobbles": cobbles,
    "weave": weave,
    "grass": grass,
    "sky": sky,
    "print": print_,
    "facade": facade,
    "dead_leaves": dead_leaves,
}
