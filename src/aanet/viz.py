"""Pictures for people: colored disparity, depth and error, a scale bar, panels and a point-cloud view."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import AanetError
from aanet.typing import FloatMap, Image, Mask

UNKNOWN = (48, 48, 48)  # dark gray: no color of the map comes near it
_PAPER = 255
_INK = "#202020"
_DPI = 100

# KITTI's error picture: upper ends of the bins in multiples of the outlier threshold (3 px and 5 %), and
# their colors (ColorBrewer's RdYlBu), as the development kit of the 2015 benchmark draws them.
KITTI_ERROR_BINS = tuple(0.1875 / 3 * 2**k for k in range(9))  # 0.1875 px, 0.375 px … 48 px where 3 px counts
KITTI_ERROR_COLORS = (
    *((49, 54, 149), (69, 117, 180), (116, 173, 209), (171, 217, 233), (224, 243, 248)),
    *((254, 224, 144), (253, 174, 97), (244, 109, 67), (215, 48, 39), (165, 0, 38)),
)


def value_range(values: FloatMap) -> tuple[float, float]:
    """A range that a few wild values do not stretch: the 1st to the 99th percentile of the finite ones."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 1.0, 2.0
    low, high = (float(value) for value in np.percentile(finite, [1, 99]))
    return (low, high) if high > low else (low, low + max(abs(low), 1.0) * 1e-3)


def colorize_disparity(disparity: FloatMap, vmin: float | None = None, vmax: float | None = None) -> Image:
    """Near is red, far is blue (turbo); unknown is dark gray.  The range defaults to `value_range`."""
    return _colorize(disparity, vmin, vmax, "px")


def colorize_depth(depth: FloatMap, vmin: float | None = None, vmax: float | None = None) -> Image:
    """As `colorize_disparity` for meters: near is red, far is blue, on a logarithmic scale."""
    return _colorize(np.where(depth > 0, depth, np.float32(np.nan)), vmin, vmax, "m")


def colorize_error(predicted: FloatMap, truth: FloatMap, valid: Mask, dot: int = 1) -> Image:
    """KITTI's error picture: blue is right, red is wrong, from yellow on a pixel counts as an outlier.

    The error is min(|e| / 3 px, |e| / (5 % of the truth)), which is 1 where the outliers begin.  Pixels
    without ground truth are black.  `dot` > 1 draws sparse ground truth as larger dots.
    """
    error = np.abs(predicted - truth)[valid]
    relative = error / np.maximum(np.abs(truth[valid]), np.float32(1e-6))
    bins = np.searchsorted(KITTI_ERROR_BINS, np.minimum(error / 3, relative / 0.05), side="right")
    picture = np.zeros((*truth.shape, 3), np.uint8)
    picture[valid] = np.array(KITTI_ERROR_COLORS, np.uint8)[bins]
    if dot == 1:
        return picture
    # Only unknown pixels take a neighbor's color; the bin decides which of several wins.
    rank = np.zeros(truth.shape, np.uint8)
    rank[valid] = bins + 1
    spread = cv2.dilate(rank, np.ones((dot, dot), np.uint8))
    palette = np.array([(0, 0, 0), *KITTI_ERROR_COLORS], np.uint8)
    return np.where(valid[..., None], picture, palette[spread])


def with_scale_bar(image: Image, vmin: float, vmax: float, unit: str) -> Image:
    """The colored map with its scale to the right: `unit` is "px" for disparity or "m" for depth."""
    height, width = image.shape[:2]
    text = _text_size(width)
    bar, gap = max(10, text), max(8, text // 2)
    canvas = np.full((height, width + bar + 2 * gap + 4 * text, 3), _PAPER, np.uint8)
    canvas[:, :width] = image
    canvas[:, width + gap : width + gap + bar] = _turbo()[np.linspace(255, 0, height).astype(int)][:, None]
    labels = []
    for value in _ticks(vmin, vmax, unit, count=max(3, min(8, height // (4 * text)))):
        y = (1 - float(_nearness(value, vmin, vmax, unit))) * (height - 1)
        y = min(max(y, 0.6 * text), height - 0.6 * text)  # a label at the end would hang over the edge
        labels.append((width + 1.5 * gap + bar, y, f"{value:g} {unit}"))
    return _write(canvas, labels, text)


def panel(images: Sequence[Image], titles: Sequence[str], columns: int = 2) -> Image:
    """Images side by side, each under its title, scaled to one height."""
    if not images or len(images) != len(titles):
        raise AanetError(f"A panel needs one title for each image; got {len(images)} and {len(titles)}.")
    columns = min(columns, len(images))
    height = max(image.shape[0] for image in images)
    fitted = [_fit_height(image, height) for image in images]
    widths = [max(image.shape[1] for image in fitted[column::columns]) for column in range(columns)]
    text = _text_size(max(widths))
    gap, head = max(8, text // 2), 2 * text
    rows = -(-len(images) // columns)
    canvas = np.full((rows * (head + height + gap), sum(widths) + (columns + 1) * gap, 3), _PAPER, np.uint8)
    labels = []
    for index, (image, title) in enumerate(zip(fitted, titles, strict=True)):
        row, column = divmod(index, columns)
        left, top = gap + sum(widths[:column]) + column * gap, row * (head + height + gap)
        canvas[top + head : top + head + height, left : left + image.shape[1]] = image
        labels.append((left, top + 0.55 * head, title))
    return _write(canvas, labels, text)


def render_points(
    points: NDArray[np.floating],
    colors: Image,
    width: int = 960,
    height: int = 640,
    yaw: float = 18.0,
    pitch: float = 12.0,
) -> Image:
    """A picture of a point cloud ([H, W, 3] meters, NaN = none) from a viewpoint swung around its middle.

    Args:
        points: As `StereoCamera.points` gives them: X right, Y down, Z forward.
        colors: RGB of each point, [H, W, 3].
        width: Of the picture.
        height: Of the picture.
        yaw: Degrees by which the viewer walks to the right (negative: to the left) around the scene.
        pitch: Degrees by which the viewer rises above it.
    """
    cloud, paint, spacing = _solid_points(points, colors)
    if not len(cloud):
        return np.full((height, width, 3), _PAPER, np.uint8)
    middle = np.median(cloud, axis=0)
    distance = float(middle[2])
    seen = (cloud - middle) @ _orbit(yaw, pitch).T + (0, 0, distance)
    front = seen[:, 2] > 0.1 * distance
    seen, paint, spacing = seen[front], paint[front], spacing[front]
    flat = seen[:, :2] / seen[:, 2:]
    low, high = np.percentile(flat, [0.5, 99.5], axis=0)
    # Drawn at twice the size and halved, which smooths the edges of the splats.
    focal = 2 * 0.92 * min(width / (high[0] - low[0]), height / (high[1] - low[1]))
    pixels = (flat - (low + high) / 2) * focal + (width, height)
    size = np.clip(np.ceil(focal * spacing / seen[:, 2]) + 1, 2, 8).astype(np.int64)
    picture = _splat(pixels, seen[:, 2], paint, size, 2 * width, 2 * height)
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


def _colorize(values: FloatMap, vmin: float | None, vmax: float | None, unit: str) -> Image:
    low, high = value_range(values)
    low, high = (low if vmin is None else vmin), (high if vmax is None else vmax)
    if not low < high or (unit == "m" and low <= 0):
        raise AanetError(f"A color scale needs vmin < vmax (and meters above 0); got {low:g} and {high:g}.")
    known = np.isfinite(values)
    nearness = np.clip(_nearness(np.where(known, values, low), low, high, unit), 0, 1)
    colored = _turbo()[(nearness * 255 + 0.5).astype(np.uint8)]
    colored[~known] = UNKNOWN
    return colored


def _nearness(
    values: NDArray[np.floating] | float, vmin: float, vmax: float, unit: str
) -> NDArray[np.float64]:
    """1 at the near end of the scale, 0 at the far end: linear in pixels, logarithmic in meters."""
    near: NDArray[np.float64] = np.asarray(values, np.float64)
    if unit == "m":
        near, vmin, vmax = -np.log(near), -math.log(vmax), -math.log(vmin)
    return (near - vmin) / (vmax - vmin)


@lru_cache(maxsize=1)
def _turbo() -> NDArray[np.uint8]:
    from matplotlib import colormaps

    return (colormaps["turbo"](np.arange(256))[:, :3] * 255 + 0.5).astype(np.uint8)


def _ticks(vmin: float, vmax: float, unit: str, count: int) -> list[float]:
    """Round numbers along the scale; 1-2-5 steps where it is logarithmic and long enough for them."""
    from matplotlib.ticker import MaxNLocator

    values = [float(value) for value in MaxNLocator(count, steps=[1, 2, 5, 10]).tick_values(vmin, vmax)]
    if unit == "m" and vmax > 4 * vmin:
        decades = range(math.floor(math.log10(vmin)), math.ceil(math.log10(vmax)) + 1)
        values = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    return [value for value in values if vmin <= value <= vmax]


def _text_size(width: int) -> int:
    """Height of the letters in pixels, readable when the picture is shown at page width."""
    return max(12, round(width / 45))


def _write(canvas: Image, labels: Sequence[tuple[float, float, str]], size: int) -> Image:
    """The canvas with texts at (x, y), each beginning at x and centered on y, in pixels from the top left."""
    from matplotlib.figure import Figure

    height, width = canvas.shape[:2]
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    figure.figimage(canvas)
    for x, y, text in labels:
        figure.text(x / width, 1 - y / height, text, fontsize=size * 72 / _DPI, color=_INK, va="center")
    drawn = io.BytesIO()
    figure.savefig(drawn, format="rgba", dpi=_DPI)
    rgba = np.frombuffer(drawn.getvalue(), np.uint8).reshape(height, width, 4)
    return np.ascontiguousarray(rgba[:, :, :3])


def _fit_height(image: Image, height: int) -> Image:
    if image.shape[0] == height:
        return image
    width = round(image.shape[1] * height / image.shape[0])
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


def _solid_points(
    points: NDArray[np.floating], colors: Image
) -> tuple[NDArray[np.float64], Image, NDArray[np.float64]]:
    """The points on surfaces (neither stray nor across an edge), their colors, the distance to the next."""
    here: NDArray[np.float64] = points.astype(np.float64)
    depth = here[..., 2]
    right, below = (np.abs(np.diff(here, axis=axis, append=np.nan)) for axis in (1, 0))
    surface = np.isfinite(here).all(axis=2) & ~(np.fmax(right[..., 2], below[..., 2]) > 0.03 * depth)
    support = cv2.morphologyEx(surface.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    keep = surface & (support > 0)
    if keep.any():
        keep &= depth < 1.5 * np.percentile(depth[keep], 97)
    spacing: NDArray[np.float64] = np.fmax(np.linalg.norm(right, axis=2), np.linalg.norm(below, axis=2))
    return here[keep], colors[keep], np.nan_to_num(spacing[keep])


def _orbit(yaw: float, pitch: float) -> NDArray[np.float64]:
    """The rotation that the scene makes when the viewer walks around it by `yaw` and rises by `pitch`."""
    a, b = math.radians(yaw), math.radians(pitch)
    turn = np.array([[math.cos(a), 0, math.sin(a)], [0, 1, 0], [-math.sin(a), 0, math.cos(a)]])
    tilt = np.array([[1, 0, 0], [0, math.cos(b), -math.sin(b)], [0, math.sin(b), math.cos(b)]])
    rotation: NDArray[np.float64] = tilt @ turn
    return rotation


def _splat(
    pixels: NDArray[np.float64],
    depth: NDArray[np.float64],
    paint: Image,
    size: NDArray[np.int64],
    width: int,
    height: int,
) -> Image:
    """Square splats, the nearest on top."""
    order = np.argsort(-depth)  # far first: of two writes to one pixel the later wins
    corner = (np.floor(pixels).astype(np.int64) - size[:, None] // 2)[order]
    size = size[order]
    top = np.full(height * width, -1, np.int32)  # for each pixel, the place in `order` of what is seen there
    for dy in range(int(size.max())):
        for dx in range(int(size.max())):
            x, y = corner[:, 0] + dx, corner[:, 1] + dy
            inside = (size > max(dx, dy)) & (x >= 0) & (x < width) & (y >= 0) & (y < height)
            layer = np.full_like(top, -1)
            layer[(y * width + x)[inside]] = np.flatnonzero(inside)
            np.maximum(top, layer, out=top)
    canvas = np.full((height * width, 3), _PAPER, np.uint8)
    canvas[top >= 0] = paint[order[top[top >= 0]]]
    return canvas.reshape(height, width, 3)
