"""Colour of a view: textures at the right level of detail, light, gloss, weighted by coverage."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import FloatMap, Image
from aanet.data.synthetic.surfaces import Gloss, Matrix, Surface
from aanet.data.synthetic.window import Window

FAINT = np.float32(1 / 512)  # less cannot change a pixel by half a grey level
ONE_LEVEL = 0.75  # octaves of detail across a surface that one level of its texture can serve
DETAIL_GRID = 32
_LINEAR = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP


def paint(size: tuple[int, int], drawn: list[tuple[Surface, Window, FloatMap]], right: bool) -> FloatMap:
    """Colour of a view from the coverages of its surfaces, given from back to front, [H, W, 3]."""
    colour: FloatMap = np.zeros((*size, 3), np.float32)
    uncovered: FloatMap = np.ones(size, np.float32)  # the part of each pixel that is still free
    for surface, window, alpha in reversed(drawn):
        weight = uncovered[window.rows_columns] * alpha
        x, y, width, height = cv2.boundingRect((weight > FAINT).view(np.uint8))
        if width == 0:
            continue
        part = window.crop(x, y, width, height)
        weight = weight[y : y + height, x : x + width]
        inside = part.rows_columns
        cv2.subtract(uncovered[inside], weight, dst=uncovered[inside])
        painted = _colour(surface, part, weight, right)
        cv2.add(colour[inside], painted, dst=colour[inside])
    return colour


def _colour(surface: Surface, window: Window, weight: FloatMap, right: bool) -> FloatMap:
    """Textured, lit and glossy colour of each pixel of the window times its weight, [h, w, 3]."""
    light = _light(surface, window)
    factor = weight if light is None else weight * light
    # Planes and a merge: numpy is many times slower when it broadcasts over a short last axis.
    tint = np.asarray(surface.shading.colour, np.float32)
    flat = surface.texture.flat
    if flat:
        tint = tint * surface.texture.image[0, 0, :3]
    planes = [factor * tint[0], factor * tint[1], factor * tint[2]]
    colour = np.asarray(cv2.merge(planes), np.float32)
    if not flat:
        cv2.multiply(colour, _textured(surface, window), dst=colour)
    if surface.gloss is not None:
        spot = _spot(surface.gloss, window, right) * weight
        cv2.add(colour, cv2.merge([spot] * 3), dst=colour)
    return colour


def _light(surface: Surface, window: Window) -> FloatMap | None:
    """Linear falloff and the effect of curvature; None where the light is even."""
    shading = surface.shading
    light: FloatMap | None = None
    if any(shading.falloff):
        (sx, sy), (cx, cy) = shading.falloff, shading.centre
        light = np.float32(sx) * window.left_x + (
            np.float32(sy) * window.y + np.float32(1 - sx * cx - sy * cy)
        )
    if surface.relief is not None and any(shading.relief):
        gx, gy = surface.relief.gradient(window.left_x, window.y)
        bent = np.float32(shading.relief[0]) * gx + np.float32(shading.relief[1]) * gy + np.float32(1.0)
        light = bent if light is None else light * bent
    return None if light is None else np.asarray(np.clip(light, 0.25, 1.8))


def _spot(gloss: Gloss, window: Window, right: bool) -> FloatMap:
    """A highlight, where this camera sees it."""
    x = (window.x - np.float32(gloss.x - (gloss.disparity if right else 0.0))) / np.float32(gloss.width)
    y = (window.y - np.float32(gloss.y)) / np.float32(gloss.height)
    return np.asarray(np.float32(255.0 * gloss.strength) * np.exp(-x * x) * np.exp(-y * y))


def _textured(surface: Surface, window: Window) -> FloatMap:
    """The texture through its homography, from the levels of detail that fit, [h, w, 3]."""
    width, height = window.size
    coarsest = surface.texture.coarsest
    low, high, base = _range_of_detail(surface.texture_from_left, window, coarsest)
    if high - low < ONE_LEVEL:
        return _sample_level(surface, window, round((low + high) / 2))
    detail = _detail(surface.texture_from_left, window, base, coarsest)
    colour: FloatMap = np.zeros((height, width, 3), np.float32)
    for level in range(int(low), int(np.ceil(high)) + 1):
        share = np.maximum(np.float32(1.0) - np.abs(detail - np.float32(level)), np.float32(0.0))
        share = np.asarray(cv2.resize(share, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
        x, y, w, h = cv2.boundingRect((share > FAINT).view(np.uint8))
        if w == 0:
            continue
        inside = slice(y, y + h), slice(x, x + w)
        part = _sample_level(surface, window.crop(x, y, w, h), level)
        cv2.multiply(part, cv2.merge([share[inside]] * 3), dst=part)
        cv2.add(colour[inside], part, dst=colour[inside])
    return colour


def _range_of_detail(homography: Matrix, window: Window, coarsest: int) -> tuple[float, float, float]:
    """Least and most log2 of texels per pixel in the window, and that value where w = 1.

    For a homography |det J| is |det H| / w³.  Where a surface is seen at a slant, texels crowd in one
    direction; half of that excess is added, between aliasing and blur.
    """
    (h00, h01, h02), (h10, h11, h12), (h20, h21, h22) = homography.tolist()
    left, right = float(window.left_x[0, 0]), float(window.left_x[-1, -1])
    top, bottom = float(window.y[0, 0]), float(window.y[-1, 0])
    ends = [abs(h20 * u + h21 * v + h22) for v in (top, bottom) for u in (left, right)]
    x, y = (left + right) / 2, (top + bottom) / 2
    w = h20 * x + h21 * y + h22
    u, v = (h00 * x + h01 * y + h02) / w, (h10 * x + h11 * y + h12) / w
    a, b, c, d = h00 - u * h20, h01 - u * h21, h10 - v * h20, h11 - v * h21  # the Jacobian, times w
    area, longest = abs(a * d - b * c) + 1e-12, a * a + b * b + c * c + d * d
    slant = 0.25 * math.log2(max(longest / (2 * area), 1.0))
    base = 0.5 * math.log2(area / abs(w)) + 1.5 * math.log2(abs(w)) + min(slant, 1.0)
    least, most = (base - 1.5 * math.log2(max(end, 1e-9)) for end in (max(ends), min(ends)))
    return min(max(least, 0.0), coarsest), min(max(most, 0.0), coarsest), base


def _detail(homography: Matrix, window: Window, base: float, coarsest: int) -> FloatMap:
    """log2 of texels per pixel on a coarse square grid over the window, for it changes slowly."""
    width, height = window.size
    columns = np.linspace(0, width - 1, DETAIL_GRID).astype(np.intp)
    rows = np.linspace(0, height - 1, DETAIL_GRID).astype(np.intp)
    left_x, y = window.left_x, window.y[rows]
    x = left_x[:, columns] if len(left_x) == 1 else left_x[rows[:, None], columns]
    h20, h21, h22 = homography[2].astype(np.float32)
    w = np.abs(h20 * x + (h21 * y + h22))
    detail = np.float32(base) - np.float32(1.5) * np.log2(np.maximum(w, np.float32(1e-9)))
    return np.asarray(np.clip(np.broadcast_to(detail, (DETAIL_GRID, DETAIL_GRID)), 0.0, float(coarsest)))


def _sample_level(surface: Surface, window: Window, level: int) -> FloatMap:
    """Sample one level of the texture for each pixel of the window, [h, w, 3]."""
    texture = surface.texture.level(level)
    scale = 0.5**level
    shrink = np.array([[scale, 0.0, 0.5 * scale - 0.5], [0.0, scale, 0.5 * scale - 0.5], [0.0, 0.0, 1.0]])
    matrix = shrink @ surface.texture_from_left
    border = cv2.BORDER_REFLECT_101
    if window.left_from_window is not None:
        texture, matrix = _mirrored(texture, matrix @ window.left_from_window, window.size)
        warped = cv2.warpPerspective(texture, matrix, window.size, flags=_LINEAR, borderMode=border)
        return cv2.cvtColor(warped, cv2.COLOR_RGBA2RGB).astype(np.float32)
    x, y = window.left_x, window.y
    (h00, h01, h02), (h10, h11, h12), (h20, h21, h22) = matrix.astype(np.float32)
    u, v = h00 * x + (h01 * y + h02), h10 * x + (h11 * y + h12)
    if h20 or h21 or h22 != 1:
        w = np.float32(1.0) / (h20 * x + (h21 * y + h22))
        u, v = u * w, v * w
    warped = cv2.remap(texture, u, v, cv2.INTER_LINEAR, borderMode=border)
    return cv2.cvtColor(warped, cv2.COLOR_RGBA2RGB).astype(np.float32)


def _mirrored(texture: Image, matrix: Matrix, size: tuple[int, int]) -> tuple[Image, Matrix]:
    """The mirrored repeats of a texture that a warp needs, laid out, as OpenCV is slow beyond an edge."""
    w, h = size[0] - 1.0, size[1] - 1.0
    u, v, scale = matrix @ np.array([[0, w, 0, w], [0, 0, h, h], [1, 1, 1, 1]])
    if scale.min() <= 0 < scale.max():
        return texture, matrix
    u, v = u / scale, v / scale
    x0, x1, y0, y1 = int(np.floor(u.min())), int(u.max()) + 2, int(np.floor(v.min())), int(v.max()) + 2
    height, width = texture.shape[:2]
    inside = x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height
    if inside or (x1 - x0) * (y1 - y0) > 8 * size[0] * size[1]:
        return texture, matrix
    columns, rows = _reflected(x0, x1, width), _reflected(y0, y1, height)
    shift = np.array([[1.0, 0.0, -x0], [0.0, 1.0, -y0], [0.0, 0.0, 1.0]])
    texels = texture.view(np.uint32)[..., 0].take(rows, axis=0).take(columns, axis=1)
    return texels[..., None].view(np.uint8), shift @ matrix


def _reflected(start: int, stop: int, length: int) -> NDArray[np.int64]:
    """Indices that mirror a line of `length` texels at its ends, as often as needed."""
    position = np.arange(start, stop) % (2 * length - 2)
    return np.minimum(position, 2 * length - 2 - position)
