"""Color of a view: mipmapped textures, light and reflections, weighted by coverage."""

from __future__ import annotations

import math
from dataclasses import replace

import cv2
import numpy as np

from aanet.synthetic.surfaces import Gloss, Matrix, Reflection, Surface, Texture
from aanet.synthetic.window import Window
from aanet.typing import FloatMap, Image, Mask

FAINT = np.float32(1 / 512)  # smaller weights change a pixel by less than half a gray level
ONE_LEVEL = 0.75  # octaves of detail within a surface for which one mipmap level is used
MOSTLY_INSIDE = 0.75  # share of a window inside the texture above which OpenCV's own mirroring is faster
FADE = np.float32(3.0)  # a third of an octave
DETAIL_GRID = 32
DIMMEST, BRIGHTEST = np.float32(0.25), np.float32(1.8)  # limits of the light after falloff and curvature
_LINEAR = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP


def paint(size: tuple[int, int], drawn: list[tuple[Surface, Window, FloatMap]], right: bool) -> FloatMap:
    """Color of a view from the coverages of its surfaces, given from back to front, [H, W, 3]."""
    color: FloatMap = np.zeros((*size, 3), np.float32)
    uncovered: FloatMap = np.ones(size, np.float32)  # the part of each pixel that is not covered yet
    for surface, window, alpha in reversed(drawn):
        weight = uncovered[window.rows_columns] * alpha
        x, y, width, height = cv2.boundingRect((weight > FAINT).view(np.uint8))
        if width == 0:
            continue
        part = window.crop(x, y, width, height)
        weight = weight[y : y + height, x : x + width]
        inside = part.rows_columns
        cv2.subtract(uncovered[inside], weight, dst=uncovered[inside])
        painted = _color(surface, part, weight, right)
        cv2.add(color[inside], painted, dst=color[inside])
    return color


def _color(surface: Surface, window: Window, weight: FloatMap, right: bool) -> FloatMap:
    """Textured, lit and glossy color of each pixel of the window times its weight, [h, w, 3]."""
    light = _light(surface, window)
    factor = weight if light is None else np.multiply(light, weight, out=light)
    red, green, blue = surface.shading.color
    # OpenCV on planes, because NumPy is many times slower when it broadcasts over a short last axis.
    if surface.texture.flat:
        r, g, b, _ = surface.texture.image[0, 0].tolist()
        planes = [factor * np.float32(value) for value in (red * r, green * g, blue * b)]
        color = cv2.merge(planes)
    else:
        tint = np.array([[red, 0, 0], [0, green, 0], [0, 0, blue]], np.float32)
        color = cv2.transform(_textured(surface.texture, surface.texture_from_left, window), tint)
        cv2.multiply(color, cv2.cvtColor(factor, cv2.COLOR_GRAY2RGB), dst=color)
    if surface.reflection is not None:
        mirrored = _mirrored(surface.reflection, window, right)
        cv2.multiply(mirrored, cv2.cvtColor(weight, cv2.COLOR_GRAY2RGB), dst=mirrored)
        share = surface.reflection.strength
        color = cv2.addWeighted(color, 1.0 - share, mirrored, share, 0.0)
    if surface.gloss is not None:
        spot = _spot(surface.gloss, window, right) * weight
        cv2.add(color, cv2.cvtColor(spot, cv2.COLOR_GRAY2RGB), dst=color)
    return np.asarray(color, np.float32)


def _light(surface: Surface, window: Window) -> FloatMap | None:
    """Linear falloff and the effect of curvature, [h, w]; None if the light is uniform."""
    shading = surface.shading
    light: FloatMap | None = None
    if any(shading.falloff):
        (sx, sy), (cx, cy) = shading.falloff, shading.center
        at_center = np.float32(1 - sx * cx - sy * cy)
        if window.across is None:
            light = np.float32(sx) * window.left_x + (np.float32(sy) * window.y + at_center)
        else:  # linear in the pixel as well
            xx, xy, x = window.across
            columns = np.arange(window.x1 - window.x0, dtype=np.float32) * np.float32(sx * xx)
            rows = window.y * np.float32(sx * xy + sy) + np.float32(sx * (x - xy * window.y0)) + at_center
            light = columns + rows
    if surface.relief is not None and any(shading.relief):
        gx, gy = surface.relief.gradient(window.left_x, window.y)
        bent = np.float32(shading.relief[0]) * gx
        bent += np.float32(shading.relief[1]) * gy
        bent += np.float32(1.0)
        light = bent if light is None else np.multiply(light, bent, out=bent)
    return None if light is None else np.clip(light, DIMMEST, BRIGHTEST, out=light)


def _spot(gloss: Gloss, window: Window, right: bool) -> FloatMap:
    """A highlight at its position in this view."""
    x = (window.x - np.float32(gloss.x - (gloss.disparity if right else 0.0))) / np.float32(gloss.width)
    y = (window.y - np.float32(gloss.y)) / np.float32(gloss.height)
    return np.asarray(np.float32(255.0 * gloss.strength) * np.exp(-x * x) * np.exp(-y * y))


def _mirrored(reflection: Reflection, window: Window, right: bool) -> FloatMap:
    """The reflected surroundings in this view, [h, w, 3]: a sheet with its own disparity."""
    shift = reflection.disparity if right else 0.0
    behind = replace(window, across=(1.0, 0.0, window.x0 + shift), bent=None)
    return _textured(reflection.texture, reflection.texture_from_left, behind)


def _textured(texture: Texture, texture_from_left: Matrix, window: Window) -> FloatMap:
    """Sample the texture through its homography, with suitable mipmap levels, [h, w, 3]."""
    width, height = window.size
    coarsest = texture.coarsest
    low, high, base = _range_of_detail(texture_from_left, window, coarsest)
    if high - low < ONE_LEVEL:
        return _sample_level(texture, texture_from_left, window, round((low + high) / 2))
    coarse = _detail(texture_from_left, window, base, coarsest)
    detail = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
    color: FloatMap = np.zeros((height, width, 3), np.float32)
    for level in range(round(low), round(high) + 1):
        served = np.abs(coarse - np.float32(level)) < 0.5 + 0.5 / FADE
        x, w = _span(served.any(axis=0), width)
        y, h = _span(served.any(axis=1), height)
        if w == 0 or h == 0:
            continue
        inside = slice(y, y + h), slice(x, x + w)
        # One level is used for most of its octave; it is blended with the next one around the midpoint.
        share = np.abs(detail[inside] - np.float32(level))
        share *= -FADE
        share += np.float32(0.5) * (FADE + 1)
        np.clip(share, np.float32(0.0), np.float32(1.0), out=share)
        part = _sample_level(texture, texture_from_left, window.crop(x, y, w, h), level)
        cv2.multiply(part, cv2.cvtColor(share, cv2.COLOR_GRAY2RGB), dst=part)
        cv2.add(color[inside], part, dst=color[inside])
    return color


def _span(cells: Mask, length: int) -> tuple[int, int]:
    """Return the first pixel and the number of pixels, of `length`, that the selected coarse cells affect."""
    chosen = np.flatnonzero(cells)
    if chosen.size == 0:
        return 0, 0
    size = length / DETAIL_GRID  # interpolation reaches one cell further
    first = max(int((int(chosen[0]) - 0.5) * size) - 1, 0)
    return first, min(int((int(chosen[-1]) + 1.5) * size) + 1, length) - first


def _range_of_detail(homography: Matrix, window: Window, coarsest: int) -> tuple[float, float, float]:
    """Least and most log2 of texels per pixel in the window, and that value where w = 1.

    For a homography |det J| is |det H| / w³. On slanted surfaces the density of texels is higher in one
    direction; half of that excess is added, a compromise between aliasing and blur.
    """
    (h00, h01, h02), (h10, h11, h12), (h20, h21, h22) = homography.tolist()
    corners = window.corners()
    ends = [abs(h20 * u + h21 * v + h22) for u, v in corners]
    x, y = (sum(values) / 4 for values in zip(*corners, strict=True))
    w = h20 * x + h21 * y + h22
    u, v = (h00 * x + h01 * y + h02) / w, (h10 * x + h11 * y + h12) / w
    a, b, c, d = h00 - u * h20, h01 - u * h21, h10 - v * h20, h11 - v * h21  # the Jacobian, times w
    area, longest = abs(a * d - b * c) + 1e-12, a * a + b * b + c * c + d * d
    slant = 0.25 * math.log2(max(longest / (2 * area), 1.0))
    base = 0.5 * math.log2(area / abs(w)) + 1.5 * math.log2(abs(w)) + min(slant, 1.0)
    least, most = (base - 1.5 * math.log2(max(end, 1e-9)) for end in (max(ends), min(ends)))
    return min(max(least, 0.0), coarsest), min(max(most, 0.0), coarsest), base


def _detail(homography: Matrix, window: Window, base: float, coarsest: int) -> FloatMap:
    """log2 of texels per pixel on a coarse square grid over the window, because it changes slowly."""
    width, height = window.size
    columns = np.linspace(0, width - 1, DETAIL_GRID).astype(np.intp)
    rows = np.linspace(0, height - 1, DETAIL_GRID).astype(np.intp)
    left_x, y = window.left_x, window.y[rows]
    x = left_x[:, columns] if len(left_x) == 1 else left_x[rows[:, None], columns]
    h20, h21, h22 = homography[2].astype(np.float32)
    w = np.abs(h20 * x + (h21 * y + h22))
    detail = np.float32(base) - np.float32(1.5) * np.log2(np.maximum(w, np.float32(1e-9)))
    return np.asarray(np.clip(np.broadcast_to(detail, (DETAIL_GRID, DETAIL_GRID)), 0.0, float(coarsest)))


def _sample_level(texture: Texture, matrix: Matrix, window: Window, level: int) -> FloatMap:
    """Sample one level of the texture for each pixel of the window, [h, w, 3]."""
    image = texture.level(level)
    if level:
        scale = 0.5**level
        matrix = matrix.copy()
        matrix[:2] *= scale
        matrix[:2] += (0.5 * scale - 0.5) * matrix[2]
    if window.across is None:
        x, y = window.left_x, window.y
    else:
        matrix = matrix @ np.array([window.across, (0.0, 1.0, window.y0), (0.0, 0.0, 1.0)])
        x, y = (np.arange(n, dtype=np.float32) for n in window.size)
        x, y = x[None, :], y[:, None]
    share = 0.0 if window.across is None else share_inside(image, matrix, window.size)
    if share > MOSTLY_INSIDE:
        border = cv2.BORDER_REFLECT_101
        warped = cv2.warpPerspective(image, matrix, window.size, flags=_LINEAR, borderMode=border)
    else:
        u, v = mirrored_texels(matrix, x, y, image.shape[:2])
        warped = cv2.remap(image, u, v, cv2.INTER_LINEAR)
    return cv2.cvtColor(warped, cv2.COLOR_RGBA2RGB).astype(np.float32)


def share_inside(texture: Image, matrix: Matrix, size: tuple[int, int]) -> float:
    """Estimate the share of a window that maps into the texture; 0 if the window includes the horizon."""
    right, bottom = size[0] - 1.0, size[1] - 1.0
    (h00, h01, h02), (h10, h11, h12), (h20, h21, h22) = matrix.tolist()
    us, vs = [], []
    for x, y in ((0.0, 0.0), (right, 0.0), (0.0, bottom), (right, bottom)):
        w = h20 * x + h21 * y + h22
        if w <= 0:
            return 0.0
        us.append((h00 * x + h01 * y + h02) / w)
        vs.append((h10 * x + h11 * y + h12) / w)
    share = 1.0
    for ends, length in ((us, texture.shape[1] - 1.0), (vs, texture.shape[0] - 1.0)):
        low, high = min(ends), max(ends)
        if low < 0 or high > length:
            inside = max(min(high, length) - max(low, 0.0), 0.0)
            share *= inside / (high - low) if high > low else 0.0  # a window of one pixel has no extent
    return share


def mirrored_texels(
    homography: Matrix, x: FloatMap, y: FloatMap, shape: tuple[int, int]
) -> tuple[FloatMap, FloatMap]:
    """Map (x [h or 1, w], y [h, 1]) by a homography to a texture that repeats by mirroring.

    OpenCV can mirror as well, but its time grows with the number of repeats: near a horizon it took longer
    than the rest of a view. One period is a texture and its mirror image, so the distance from the
    nearest whole period, in texels, is the position within the texture.
    """
    periods = (2.0 * shape[1] - 2.0, 2.0 * shape[0] - 2.0)
    bottom = homography[2].astype(np.float32)
    whole = np.asarray(bottom[0] * x + (bottom[1] * y + bottom[2]))
    near = None
    if bottom[0] or bottom[1] or bottom[2] != 1:
        # Nothing is visible beyond the horizon, where any finite position is fine.
        np.clip(whole, np.float32(1e-9), np.float32(1e9), out=whole)
        near = np.divide(np.float32(1.0), whole)
    found = []
    for row, period in zip(homography[:2], periods, strict=True):
        h0, h1, h2 = (row / period).astype(np.float32)
        position = np.asarray(h0 * x + (h1 * y + h2))
        if near is not None:
            position *= near
        position -= np.rint(position, out=whole)
        np.abs(position, out=position)
        position *= np.float32(period)
        found.append(position)
    return found[0], found[1]
