"""Scenes cut out of photographs: natural outlines that coincide with disparity edges.

The segments of a photograph become slanted or curved sheets at random depths. Most rise from a common
ground plane; some stay on it, so that not every image edge is a disparity edge. Another photograph fills
the background.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.synthetic.library import VARIANTS, TextureLibrary
from aanet.synthetic.surfaces import Dome, Folds, Matrix, Plane, Relief, Scene, Surface, Texture
from aanet.typing import FloatMap, Image, Mask

Labels = NDArray[np.int32]
SEED_SPACING = 13  # px between the watershed's seeds, at half the photograph's size
SMALLEST_SEGMENT = 0.006  # of the photograph's area
GROUND_SHARE = 0.35  # of segments that stay on the common ground
LEAST_DISPARITY = 0.25


def segment(image: Image) -> Labels:
    """Segment an image at half size into labels 0..N-1: watershed from a grid of seeds, merged by color."""
    height, width = image.shape[:2]
    small = cv2.resize(image, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    smooth = np.asarray(cv2.GaussianBlur(small, (3, 3), 0.8), np.uint8)
    seeds = np.zeros(smooth.shape[:2], np.int32)
    grid = seeds[SEED_SPACING // 2 :: SEED_SPACING, SEED_SPACING // 2 :: SEED_SPACING]
    grid[...] = np.arange(1, grid.size + 1).reshape(grid.shape)
    flooded = cv2.watershed(smooth, seeds)
    # Watershed lines and the image border are -1; a dilation assigns them to a neighbor.
    grown = cv2.dilate(flooded.astype(np.float32), np.ones((3, 3), np.uint8)).astype(np.int32)
    regions = np.maximum(np.where(flooded < 1, grown, flooded) - 1, 0)
    return _merge(regions, smooth.astype(np.float32))


def _merge(regions: Labels, image: FloatMap) -> Labels:
    """Merge similar neighboring regions, the most similar first; then merge regions that are too small."""
    count = int(regions.max()) + 1
    flat = regions.ravel()
    area = np.bincount(flat, minlength=count).astype(np.float64)
    sums = np.stack([np.bincount(flat, image[..., k].ravel(), count) for k in range(3)], 1)
    pairs = np.concatenate(
        [_touching(regions[:, :-1], regions[:, 1:], count), _touching(regions[:-1], regions[1:], count)]
    )
    pairs = np.stack(np.divmod(np.unique(pairs), count), 1)  # each pair of neighbors once
    mean = sums / np.maximum(area, 1.0)[:, None]
    contrast = np.abs(mean[pairs[:, 0]] - mean[pairs[:, 1]]).sum(axis=1)
    ordered = pairs[np.argsort(contrast, kind="stable")].tolist()
    # Python lists, because access to single array elements is ten times as slow.
    parent, areas, (red, green, blue) = list(range(count)), area.tolist(), sums.T.tolist()

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    smallest = SMALLEST_SEGMENT * regions.size
    for limit in (45.0, np.inf):  # gray levels over the three channels
        for one, other in ordered:
            a, b = root(one), root(other)
            if a == b or (limit == np.inf and min(areas[a], areas[b]) >= smallest):
                continue
            in_a, in_b = max(areas[a], 1.0), max(areas[b], 1.0)
            if sum(abs(c[a] / in_a - c[b] / in_b) for c in (red, green, blue)) < limit:
                parent[b] = a
                for total in (areas, red, green, blue):
                    total[a] += total[b]
    roots = np.array([root(i) for i in range(count)])
    return np.unique(roots, return_inverse=True)[1].astype(np.int32)[regions]


def _touching(a: Labels, b: Labels, count: int) -> NDArray[np.int64]:
    """Return one number for each pair of adjacent pixels in two regions: low label × count + high label."""
    differ = a != b
    first, second = a[differ].astype(np.int64), b[differ].astype(np.int64)
    return np.asarray(np.minimum(first, second) * count + np.maximum(first, second))


@dataclass(frozen=True)
class _Ground:
    """The common ground plane of a scene, and its range of disparities."""

    plane: Plane
    far: float
    near: float

    def at(self, x: float, y: float) -> float:
        return self.plane.a * x + self.plane.b * y + self.plane.c


def photo_scene(
    rng: np.random.Generator, library: TextureLibrary, size: tuple[int, int], near: float
) -> Scene:
    """Make a scene of a photograph cut into sheets, in front of another photograph."""
    height, width = size
    number, behind = _pick(rng, library), _pick(rng, library)
    picture = _picture(library, number)
    labels = library.derived(("segments", number), lambda: segment(picture.image[..., :3]))
    magnified = rng.uniform(0.9, 1.5)
    reach = np.array([(width + near) / magnified, height / magnified])  # in pixels of the photograph
    extra = np.maximum(np.ceil((reach + 4) / 4 - np.array(labels.shape[::-1]) / 2), 0).astype(int)
    wide = cv2.copyMakeBorder(labels, extra[1], extra[1], extra[0], extra[0], cv2.BORDER_REFLECT)
    corner = rng.random(2) * (2 * np.array(wide.shape[::-1]) - reach - 2) + 1.0
    to_labels = np.array([[1 / magnified, 0, corner[0]], [0, 1 / magnified, corner[1]], [0, 0, 1.0]])
    to_picture = np.array([[1.0, 0, -2.0 * extra[0]], [0, 1.0, -2.0 * extra[1]], [0, 0, 1.0]]) @ to_labels
    ground = _ground(rng, size, near)
    sheets = _sheets(rng, np.asarray(wide, np.int32), to_labels, to_picture, picture, ground)
    sheets.sort(key=_middle)
    return Scene("photo", size, (_fill(rng, _picture(library, behind), ground, size), *sheets))


def _pick(rng: np.random.Generator, library: TextureLibrary) -> int:
    return int(rng.integers(len(library.photographs) or VARIANTS))


def _picture(library: TextureLibrary, number: int) -> Texture:
    """Return a photograph or, without a folder, a generated tile with similar edges."""
    return library.photograph(number) if library.photographs else library.tile("dead_leaves", number)


def _ground(rng: np.random.Generator, size: tuple[int, int], near: float) -> _Ground:
    """Draw a plane that is nearer toward the bottom of the view."""
    height, width = size
    far = max(near * rng.uniform(0.05, 0.5), LEAST_DISPARITY)
    rise = rng.uniform(0.0, 0.6) * (near - far) / height
    tilt = float(np.clip(rng.normal(0.0, 0.1), -0.2, 0.2)) * (near - far) / width
    return _Ground(Plane(tilt, rise, far + abs(tilt) * width - tilt * width / 2), far, near)


def _fill(rng: np.random.Generator, picture: Texture, ground: _Ground, size: tuple[int, int]) -> Surface:
    """The photograph behind all sheets."""
    height, width = size
    scale = rng.uniform(0.6, 1.1)
    back = np.array([[scale, 0, rng.uniform(0, 60)], [0, scale, rng.uniform(0, 60)], [0, 0, 1.0]])
    mask = np.ones((height + 4, width + int(ground.near) + 6), np.float32)
    to_mask = np.array([[1.0, 0, 1.5], [0, 1.0, 1.5], [0, 0, 1.0]])
    return Surface(Plane(0.0, 0.0, 0.4 * ground.far), mask, to_mask, picture, back)


def _sheets(
    rng: np.random.Generator,
    labels: Labels,
    to_labels: Matrix,
    to_picture: Matrix,
    picture: Texture,
    ground: _Ground,
) -> list[Surface]:
    """Make one sheet for all segments on the ground, and one for every other visible segment."""
    count = int(labels.max()) + 1
    fate = rng.random(count)
    missing = rng.choice([0.0, 0.0, 0.2])  # share of segments left out, so that the background is visible
    number = np.arange(1, count + 1)
    number[fate < GROUND_SHARE] = 0
    number[fate > 1.0 - missing] = -1
    labels = number[labels].astype(np.int32)
    sheets = []
    for index, (x, y, w, h) in enumerate(_boxes(labels, count + 1)):
        if w == 0:
            continue
        x0, y0 = max(x - 2, 0), max(y - 2, 0)
        mask = _mask(labels[y0 : y + h + 2, x0 : x + w + 2] == index)
        shift = np.array([[1.0, 0, -2.0 * x0], [0, 1.0, -2.0 * y0], [0, 0, 1.0]])
        (sx, _, tx), (_, sy, ty), _ = to_labels.tolist()
        box = ((2 * x - tx) / sx, (2 * y - ty) / sy, (2 * (x + w) - tx) / sx, (2 * (y + h) - ty) / sy)
        plane, relief = (ground.plane, None) if index == 0 else _depth(rng, ground, box)
        sheets.append(Surface(plane, mask, shift @ to_labels, picture, to_picture, relief=relief))
    return sheets


def _mask(inside: Mask) -> FloatMap:
    """Compute the coverage at full size from a segment at half size.

    The edge is smoothed, sharpened, and moved outward by half a pixel, so that neighbors overlap and the
    background is not visible between them.
    """
    height, width = inside.shape
    small = cv2.GaussianBlur(inside.astype(np.float32), (3, 3), 0.8)
    large = cv2.resize(small, (2 * width, 2 * height), interpolation=cv2.INTER_LINEAR)
    sharp = np.asarray(large, np.float32) * np.float32(2.5) - np.float32(0.55)
    return np.asarray(np.clip(sharp, 0.0, 1.0))


def _boxes(labels: Labels, count: int) -> list[tuple[int, int, int, int]]:
    """Bounding boxes x, y, width, height of the labels 0..count-1; width 0 if a label is absent."""
    edges = []
    for lines in (labels.T, labels):
        seen = np.zeros((len(lines), count + 1), bool)  # line i shows label j; the last column takes -1
        seen[np.arange(len(lines))[:, None], lines] = True
        first, last = seen.argmax(axis=0), len(lines) - seen[::-1].argmax(axis=0)
        edges.append((first, np.where(seen.any(axis=0), last - first, 0)))
    (x, w), (y, h) = edges
    return [(int(x[i]), int(y[i]), int(w[i]), int(h[i])) for i in range(count)]


def _depth(
    rng: np.random.Generator, ground: _Ground, box: tuple[float, float, float, float]
) -> tuple[Plane, Relief | None]:
    """Draw the plane and relief of a sheet within the scene's range of disparities."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    half_w, half_h = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
    base = float(np.clip(ground.at(x, box[3]), ground.far, ground.near))
    room = ground.near - base
    center = base + room * rng.random() ** 1.5
    span = min(ground.near - center, center - 0.5 * ground.far - LEAST_DISPARITY)
    a, b = (float(v) for v in rng.normal(0.0, (0.06, 0.1)))
    shrink = min(1.0, max(span, 0.0) / (abs(a) * half_w + abs(b) * half_h + 1e-6))
    a, b = a * shrink, b * shrink
    plane = Plane(a, b, center - a * x - b * y)
    spare = min(max(span - abs(a) * half_w - abs(b) * half_h, 0.0), 0.12 * ground.near)
    kind = rng.random()
    if kind < 0.2:
        limit = Dome.steepest_height(min(half_w, half_h), 0.5)
        return plane, Dome(x, y, max(half_w, 2.0), max(half_h, 2.0), float(min(spare, limit)))
    if kind < 0.35:
        wavelength, direction = rng.uniform(50, 200), rng.uniform(0, np.pi)
        k = 2 * np.pi / wavelength
        height = min(spare, 0.4 / k)
        return plane, Folds(
            np.array([[height, k * np.cos(direction), k * np.sin(direction), rng.uniform(0, 7)]])
        )
    return plane, None


def _middle(sheet: Surface) -> float:
    x0, y0, x1, y1 = sheet.left_box
    return sheet.plane.a * (x0 + x1) / 2 + sheet.plane.b * (y0 + y1) / 2 + sheet.plane.c
