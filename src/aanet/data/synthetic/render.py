"""Both views of a scene, with exact disparity and occlusion, before any camera effect.

Each surface is sampled in each view through its closed form and composited by a z-buffer.  Colour is blended
by coverage, so edges are anti-aliased; the disparity label belongs to the frontmost surface that covers at
least half of the pixel and is never blended.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import FloatMap, Mask
from aanet.data.synthetic.surfaces import Matrix, Scene, Surface

COVERED = np.float32(0.5)
FAINT = np.float32(1 / 512)  # less cannot change a pixel by half a grey level
NEARER = np.float32(2e-3)  # px: two sheets that touch do not hide each other
REMAP_ROW = 4096  # cv2.remap cannot write images wider or higher than 32767
_LINEAR = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP


@dataclass(frozen=True)
class RenderedPair:
    """A clean stereo pair: float RGB in 0..255 and the ground truth of both views."""

    left: FloatMap  # [H, W, 3]
    right: FloatMap  # [H, W, 3]
    disparity: FloatMap  # [H, W]
    right_disparity: FloatMap  # [H, W], on the right grid
    visible: Mask  # [H, W], the right camera sees it too
    right_visible: Mask  # [H, W], the left camera sees it too


@dataclass(frozen=True)
class _View:
    colour: FloatMap  # [H, W, 3]
    disparity: FloatMap  # [H, W]
    owner: NDArray[np.int16]  # [H, W], index of the surface in front


@dataclass(frozen=True)
class _Window:
    """A rectangle of a view and, for each of its pixels, the left position on one surface."""

    x0: int
    y0: int
    x1: int
    y1: int
    left_from_window: Matrix | None  # 3×3; None where it is not linear: curved, and seen from the right
    left_x: FloatMap  # [h, w]; [1, w] where it does not depend on the row
    y: FloatMap  # [h, 1]

    @property
    def rows_columns(self) -> tuple[slice, slice]:
        return slice(self.y0, self.y1), slice(self.x0, self.x1)

    @property
    def size(self) -> tuple[int, int]:
        return self.x1 - self.x0, self.y1 - self.y0

    def crop(self, x: int, y: int, width: int, height: int) -> _Window:
        """A part of the window, given relative to its corner."""
        columns = slice(x, x + width)
        left_x = self.left_x[y : y + height, columns] if len(self.left_x) > 1 else self.left_x[:, columns]
        matrix = self.left_from_window
        if matrix is not None:
            matrix = matrix @ np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])
        x0, y0 = self.x0 + x, self.y0 + y
        return _Window(x0, y0, x0 + width, y0 + height, matrix, left_x, self.y[y : y + height])


def render_scene(scene: Scene) -> RenderedPair:
    """Render both views of `scene`."""
    left, right = _render_view(scene, False), _render_view(scene, True)
    return RenderedPair(
        left.colour,
        right.colour,
        left.disparity,
        right.disparity,
        _visible(scene, left, right, False),
        _visible(scene, right, left, True),
    )


def _render_view(scene: Scene, right: bool) -> _View:
    """Two passes: who is in front, from back to front; then colour, from front to back, where it shows."""
    height, width = scene.size
    disparity: FloatMap = np.full((height, width), -np.inf, np.float32)
    owner: NDArray[np.int16] = np.full((height, width), -1, np.int16)
    drawn: list[tuple[Surface, _Window, FloatMap]] = []
    parent = -1
    for index, surface in enumerate(scene.surfaces):
        parent = parent if surface.decal else index
        window = _window(surface, scene.size, right)
        if window is None:
            continue
        alpha = _coverage(surface, window)
        inside = window.rows_columns
        if surface.decal:
            alpha *= owner[inside] == parent
        else:
            own = surface.disparity(window.left_x, window.y)
            front = own > disparity[inside]
            if surface.group >= 0:
                front |= _of_group(scene, surface.group)[owner[inside]]
            alpha *= front
            covered = alpha >= COVERED
            np.copyto(disparity[inside], own, where=covered)
            np.copyto(owner[inside], np.int16(index), where=covered)
        drawn.append((surface, window, alpha))
    return _View(_paint(scene, drawn, right), disparity, owner)


def _paint(scene: Scene, drawn: list[tuple[Surface, _Window, FloatMap]], right: bool) -> FloatMap:
    """Colour of a view from the coverages of its surfaces, given from back to front, [H, W, 3]."""
    colour: FloatMap = np.zeros((*scene.size, 3), np.float32)
    open_: FloatMap = np.ones(scene.size, np.float32)  # the part of each pixel not yet covered
    for surface, window, alpha in reversed(drawn):
        weight = open_[window.rows_columns] * alpha
        shown = cv2.boundingRect((weight > FAINT).view(np.uint8))
        if shown[2] == 0:
            continue
        part = window.crop(*shown)
        inside = part.rows_columns
        weight = weight[shown[1] : shown[1] + shown[3], shown[0] : shown[0] + shown[2]]
        textured = _colour(surface, part, right)
        textured *= weight[..., None]
        colour[inside] += textured
        open_[inside] -= weight
    return colour


def _of_group(scene: Scene, group: int) -> Mask:
    """For each owner index, and -1 at the end, whether it belongs to the group."""
    return np.array([surface.group == group for surface in scene.surfaces] + [False])


def _extent(surface: Surface, size: tuple[int, int], right: bool) -> tuple[int, int, int, int] | None:
    """The rectangle x0, y0, x1, y1 of the view that the surface can touch; None if there is none."""
    if right and not surface.seen_by_right:
        return None
    x, y = surface.corners
    reach = (0.0, 0.0) if surface.relief is None else surface.relief.bounds()
    if right:
        x = x - (surface.plane.a * x + surface.plane.b * y + surface.plane.c)
        x = np.concatenate((x - reach[0], x - reach[1]))
    x0, x1 = max(int(np.floor(x.min())), 0), min(int(np.ceil(x.max())) + 1, size[1])
    y0, y1 = max(int(np.floor(y.min())), 0), min(int(np.ceil(y.max())) + 1, size[0])
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _window(surface: Surface, size: tuple[int, int], right: bool) -> _Window | None:
    """Left positions for the rectangle of the view that the surface can touch; None if there is none."""
    extent = _extent(surface, size, right)
    if extent is None:
        return None
    x0, y0, x1, y1 = extent
    columns = np.arange(x0, x1, dtype=np.float32)[None, :]
    rows = np.arange(y0, y1, dtype=np.float32)[:, None]
    shift = np.array([[1.0, 0.0, x0], [0.0, 1.0, y0], [0.0, 0.0, 1.0]])
    if not right:
        return _Window(x0, y0, x1, y1, shift, columns, rows)
    matrix = surface.plane.left_from_right() @ shift if surface.relief is None else None
    return _Window(x0, y0, x1, y1, matrix, surface.left_x(columns, rows), rows)


def _coverage(surface: Surface, window: _Window) -> FloatMap:
    """Coverage of each pixel of the window by the surface."""
    if window.left_from_window is None:
        alpha = sample_mask(surface, window.left_x, window.y)
    else:
        matrix = (surface.mask_from_left @ window.left_from_window)[:2]
        alpha = np.asarray(
            cv2.warpAffine(surface.mask, matrix, window.size, flags=_LINEAR, borderMode=cv2.BORDER_CONSTANT)
        )
    return alpha if surface.opacity == 1.0 else alpha * np.float32(surface.opacity)


def sample_mask(surface: Surface, left_x: FloatMap, y: FloatMap) -> FloatMap:
    """Coverage of a surface at any left positions, bilinear on its mask."""
    m = surface.mask_from_left
    u = np.asarray(m[0, 0] * left_x + (m[0, 1] * y + m[0, 2]), np.float32)
    v = np.asarray(m[1, 0] * left_x + (m[1, 1] * y + m[1, 2]), np.float32)
    return np.asarray(cv2.remap(surface.mask, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT))


def _colour(surface: Surface, window: _Window, right: bool) -> FloatMap:
    """Textured, shaded and glossy colour of each pixel of the window, [h, w, 3]."""
    colour = _textured(surface, window)
    shading = surface.shading
    light: FloatMap | None = None
    if any(shading.falloff):
        (sx, sy), (cx, cy) = shading.falloff, shading.centre
        light = np.asarray(1.0 + sx * (window.left_x - cx) + sy * (window.y - cy), np.float32)
    if surface.relief is not None and any(shading.relief):
        _, gx, gy = surface.relief.evaluate(window.left_x, window.y)
        bent = 1.0 + shading.relief[0] * gx + shading.relief[1] * gy
        light = bent if light is None else light * bent
    if light is not None:
        light = np.clip(light, np.float32(0.25), np.float32(1.8))
        colour *= light[..., None] * np.asarray(shading.colour, np.float32)
    else:
        colour *= np.asarray(shading.colour, np.float32)
    if surface.gloss is not None:
        gloss = surface.gloss
        x = np.arange(window.x0, window.x1, dtype=np.float32)[None, :]
        x = x - np.float32(gloss.x - (gloss.disparity if right else 0.0))
        y = window.y - np.float32(gloss.y)
        spot = np.exp(-((x / np.float32(gloss.width)) ** 2)) * np.exp(-((y / np.float32(gloss.height)) ** 2))
        colour += (np.float32(255.0 * gloss.strength) * spot)[..., None]
    return colour


def _full(values: FloatMap, window: _Window) -> FloatMap:
    width, height = window.size
    return np.ascontiguousarray(np.broadcast_to(values, (height, width)), np.float32)


def _textured(surface: Surface, window: _Window) -> FloatMap:
    """The texture through its homography, from the level of detail that fits, [h, w, 3]."""
    width, height = window.size
    levels = surface.texture.levels
    if levels[0].shape[:2] == (1, 1):
        return np.full((height, width, 3), levels[0][0, 0], np.float32)
    low, high, detail = _level_of_detail(surface.texture_from_left, window, len(levels) - 1)
    if detail is None:
        return _sample_level(surface, window, round((low + high) / 2), slice(0, height))
    colour: FloatMap = np.zeros((height, width, 3), np.float32)
    for level in range(int(low), int(np.ceil(high)) + 1):
        weight = np.maximum(1.0 - np.abs(detail - np.float32(level)), 0.0)
        rows = np.flatnonzero(weight.max(axis=1) > 0)
        if rows.size == 0:
            continue
        band = slice(int(rows[0]), int(rows[-1]) + 1)
        part = _sample_level(surface, window, level, band)
        part *= weight[band, :, None]
        colour[band] += part
    return colour


def _level_of_detail(
    homography: Matrix, window: _Window, coarsest: int
) -> tuple[float, float, FloatMap | None]:
    """log2 of the texels per pixel (|det J| of a homography is |det H| / w³): least, most, and where it matters a map."""
    h = homography
    x, y = window.left_x, window.y
    ends = [
        abs(h[2, 0] * u + h[2, 1] * v + h[2, 2])
        for v in (y[0, 0], y[-1, 0])
        for u in (x[0, 0], x[0, -1], x[-1, 0], x[-1, -1])
    ]
    base = 0.5 * np.log2(abs(np.linalg.det(h)) + 1e-12)
    low, high = (
        float(np.clip(base - 1.5 * np.log2(max(w, 1e-9)), 0.0, coarsest)) for w in (max(ends), min(ends))
    )
    if high - low < 0.75:
        return low, high, None
    w = np.abs(np.float32(h[2, 0]) * x + (np.float32(h[2, 1]) * y + np.float32(h[2, 2])))
    detail = np.float32(base) - np.float32(1.5) * np.log2(np.maximum(w, np.float32(1e-9)))
    return low, high, _full(np.clip(detail, np.float32(0), np.float32(coarsest)), window)


def _sample_level(surface: Surface, window: _Window, level: int, rows: slice) -> FloatMap:
    """Sample one level of the texture for a band of rows of the window."""
    texture = surface.texture.levels[level].astype(np.float32)
    scale = 0.5**level
    shrink = np.array([[scale, 0.0, 0.5 * scale - 0.5], [0.0, scale, 0.5 * scale - 0.5], [0.0, 0.0, 1.0]])
    matrix = shrink @ surface.texture_from_left
    width, height = window.size[0], rows.stop - rows.start
    if window.left_from_window is not None:
        down = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, rows.start], [0.0, 0.0, 1.0]])
        matrix = matrix @ window.left_from_window @ down
        warped = cv2.warpPerspective(
            texture, matrix, (width, height), flags=_LINEAR, borderMode=cv2.BORDER_REFLECT_101
        )
        return np.asarray(warped, np.float32)
    x, y = window.left_x[rows], window.y[rows]
    w = matrix[2, 0] * x + (matrix[2, 1] * y + matrix[2, 2])
    u = np.asarray((matrix[0, 0] * x + (matrix[0, 1] * y + matrix[0, 2])) / w, np.float32)
    v = np.asarray((matrix[1, 0] * x + (matrix[1, 1] * y + matrix[1, 2])) / w, np.float32)
    return np.asarray(
        cv2.remap(texture, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101), np.float32
    )


def _visible(scene: Scene, view: _View, other: _View, right: bool) -> Mask:
    """Whether the other camera sees the surface point of each pixel of `view`.

    The point lands between two pixels of the other view.  Where both show the same surface it is visible;
    everywhere else every surface is asked whether it covers that very position with a larger disparity.
    """
    height, width = scene.size
    sign = np.float32(1.0 if right else -1.0)
    there = np.arange(width, dtype=np.float32)[None, :] + sign * view.disparity
    visible = (there >= 0) & (there <= width - 1)
    before = np.clip(there, 0, width - 1).astype(np.int32)
    rows = np.arange(height, dtype=np.int32)[:, None] * width
    owners = other.owner.ravel()
    same = (owners[rows + before] == view.owner) & (
        owners[rows + np.minimum(before + 1, width - 1)] == view.owner
    )
    y, x = np.nonzero(visible & ~same)
    if y.size:
        visible[y, x] = ~_hidden(
            scene, there[y, x], y.astype(np.float32), view.disparity[y, x], view.owner[y, x], right
        )
    return visible


def _hidden(
    scene: Scene, x: FloatMap, y: FloatMap, disparity: FloatMap, owner: NDArray[np.int16], from_right: bool
) -> Mask:
    """Whether another surface lies in front of points with `disparity` at (x, y) of the other view."""
    surfaces = scene.surfaces
    edge_on = np.array([not surface.seen_by_right for surface in surfaces])
    groups = np.array([s.group if s.group >= 0 else -2 - i for i, s in enumerate(surfaces)])
    hidden: Mask = edge_on[owner]
    group = groups[owner]
    for index, surface in enumerate(surfaces):
        extent = None if surface.decal else _extent(surface, scene.size, not from_right)
        if extent is None:
            continue
        x0, y0, x1, y1 = extent
        ask = (x > x0 - 1) & (x < x1) & (y >= y0) & (y < y1)
        (chosen,) = np.nonzero(ask & ~hidden & (group != groups[index]))
        if chosen.size == 0:
            continue
        px, py = x[chosen], y[chosen]
        left = px if from_right else surface.left_x(px, py)
        nearer = surface.disparity(left, py) > disparity[chosen] + NEARER
        chosen, left, py = chosen[nearer], left[nearer], py[nearer]
        for start in range(0, chosen.size, REMAP_ROW):
            part = slice(start, start + REMAP_ROW)
            cover = sample_mask(surface, left[None, part], py[None, part])[0]
            hidden[chosen[part]] |= cover >= COVERED
    return hidden
