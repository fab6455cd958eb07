"""Render both views of a scene with exact disparity and occlusion, without camera effects.

Each surface is sampled in each view in closed form and composited with a z-buffer. Color is blended by
coverage, so edges are anti-aliased; the disparity is that of the frontmost surface that covers at least
half of the pixel and is never blended.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.synthetic.shade import paint
from aanet.synthetic.surfaces import Scene, Surface
from aanet.synthetic.window import Window, disparity_in, extent_of, window_of
from aanet.typing import FloatMap, Mask

COVERED = np.float32(0.5)
NEARER = np.float32(2e-3)  # px: touching sheets do not occlude each other
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
    color: FloatMap  # [H, W, 3]
    disparity: FloatMap  # [H, W]
    owner: NDArray[np.int16]  # [H, W], index of the surface in front


def render_scene(scene: Scene) -> RenderedPair:
    """Render both views of `scene`."""
    left, right = _render_view(scene, False), _render_view(scene, True)
    return RenderedPair(
        left.color,
        right.color,
        left.disparity,
        right.disparity,
        _visible(scene, left, right, False),
        _visible(scene, right, left, True),
    )


def _render_view(scene: Scene, right: bool) -> _View:
    """Render in two passes: depth order from back to front; then visible color from front to back."""
    height, width = scene.size
    disparity: FloatMap = np.full((height, width), -np.inf, np.float32)
    owner: NDArray[np.int16] = np.full((height, width), -1, np.int16)
    drawn: list[tuple[Surface, Window, FloatMap]] = []
    parent = -1
    firsts: dict[int, int] = {}  # index of the first sheet of each group; they are consecutive
    for index, surface in enumerate(scene.surfaces):
        parent = parent if surface.decal else index
        window = window_of(surface, scene.size, right)
        if window is None:
            continue
        inside = window.rows_columns
        alpha = _coverage(surface, window)
        # OpenCV's masked copies are many times faster than NumPy's.
        if surface.decal:
            seen = owner[inside] == parent
        else:
            own = disparity_in(surface, window, right)
            seen = own > disparity[inside]
            if surface.group >= 0:
                seen |= owner[inside] >= firsts.setdefault(surface.group, index)
        alpha = np.asarray(cv2.copyTo(alpha, seen.view(np.uint8)))
        if surface.decal:
            alpha *= np.float32(surface.opacity)
        else:
            covered = (alpha >= COVERED).view(np.uint8)
            cv2.copyTo(own, covered, disparity[inside])
            cv2.copyTo(np.full(own.shape, index, np.int16), covered, owner[inside])
        drawn.append((surface, window, alpha))
    return _View(paint(scene.size, drawn, right), disparity, owner)


def _coverage(surface: Surface, window: Window) -> FloatMap:
    """Coverage of each pixel of the window by the surface."""
    (sx, _, tx), (_, sy, ty), _ = surface.mask_from_left.tolist()
    if surface.solid:
        height, width = surface.mask.shape
        corners = [(sx * x + tx, sy * y + ty) for x, y in window.corners()]
        if all(0 <= u <= width - 1 and 0 <= v <= height - 1 for u, v in corners):
            return np.ones(window.size[::-1], np.float32)
    if window.across is None:
        return sample_mask(surface, window.left_x, window.y)
    xx, xy, x = window.across
    matrix = np.array([[sx * xx, sx * xy, sx * x + tx], [0.0, sy, sy * window.y0 + ty]])
    return np.asarray(
        cv2.warpAffine(surface.mask, matrix, window.size, flags=_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    )


def sample_mask(surface: Surface, left_x: FloatMap, y: FloatMap) -> FloatMap:
    """Return the coverage of a surface at left positions, interpolated bilinearly."""
    m = surface.mask_from_left.astype(np.float32)
    u = m[0, 0] * left_x + (m[0, 1] * y + m[0, 2])
    v = m[1, 0] * left_x + (m[1, 1] * y + m[1, 2])
    return np.asarray(cv2.remap(surface.mask, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT))


def _visible(scene: Scene, view: _View, other: _View, right: bool) -> Mask:
    """Whether the other camera sees the surface point of each pixel of `view`.

    The point projects between two pixels of the other view. If both show the same surface, it is visible;
    otherwise every surface is tested for covering that position with a larger disparity.
    """
    height, width = scene.size
    sign = np.float32(1.0 if right else -1.0)
    there = np.arange(width, dtype=np.float32)[None, :] + sign * view.disparity
    visible: Mask = (there >= 0) & (there <= width - 1)
    before = np.clip(there, np.float32(0), np.float32(width - 2)).astype(np.intp)
    before += np.arange(height)[:, None] * width
    owners = other.owner.ravel()
    # The surface that a pixel and the next one show; -1 if they differ.
    both = np.full(other.owner.shape, -1, np.int16)
    alike = other.owner[:, 1:] == other.owner[:, :-1]
    cv2.copyTo(other.owner[:, :-1], alike.view(np.uint8), both[:, :-1])
    same = both.take(before) == view.owner
    (doubtful,) = np.nonzero((visible & ~same).ravel())
    if doubtful.size == 0:
        return visible
    disparity, own = view.disparity.ravel()[doubtful], view.owner.ravel()[doubtful]
    # Nearly all of them are behind a surface that covers both neighbors and is nearer at both.
    at, nearness = before.ravel()[doubtful], other.disparity.ravel()
    groups = _groups(scene)
    covered = (owners[at] == owners[at + 1]) & (groups[owners[at]] != groups[own])
    covered &= np.minimum(nearness[at], nearness[at + 1]) > disparity + NEARER
    visible.ravel()[doubtful[covered]] = False
    open_ = ~covered
    doubtful = doubtful[open_]
    x, y = there.ravel()[doubtful], (doubtful // width).astype(np.float32)
    visible.ravel()[doubtful] = ~_hidden(scene, x, y, disparity[open_], own[open_], right)
    return visible


def _groups(scene: Scene) -> NDArray[np.int64]:
    """Return a number for each surface, equal within a group, whose surfaces never occlude each other."""
    return np.array([s.group if s.group >= 0 else -2 - i for i, s in enumerate(scene.surfaces)])


def _hidden(
    scene: Scene, x: FloatMap, y: FloatMap, disparity: FloatMap, owner: NDArray[np.int16], from_right: bool
) -> Mask:
    """Whether another surface is in front of points with `disparity` at (x, y) of the other view."""
    surfaces = scene.surfaces
    edge_on = np.array([not surface.seen_by_right for surface in surfaces])
    hidden: Mask = edge_on[owner]
    disparity = disparity + NEARER
    candidates = _may_be_nearer(scene, x, y, disparity, from_right)
    groups = _groups(scene)
    candidates &= (groups[owner] != groups[:, None]) & ~hidden
    for index in np.flatnonzero(candidates.any(axis=1)).tolist():
        surface = surfaces[index]
        (chosen,) = np.nonzero(candidates[index] & ~hidden)
        if chosen.size == 0:
            continue
        px, py = x[chosen], y[chosen]
        left = px if from_right else surface.left_x(px, py)
        if surface.relief is not None:
            nearer = surface.disparity(left, py) > disparity[chosen]
            chosen, left, py = chosen[nearer], left[nearer], py[nearer]
        for start in range(0, chosen.size, REMAP_ROW):
            part = slice(start, start + REMAP_ROW)
            cover = sample_mask(surface, left[None, part], py[None, part])[0]
            hidden[chosen[part]] |= cover >= COVERED
    return hidden


def _may_be_nearer(scene: Scene, x: FloatMap, y: FloatMap, disparity: FloatMap, from_right: bool) -> Mask:
    """Which surfaces of the other view may cover points (x, y) with more than `disparity`, [S, N].

    Exact except for reliefs, for which their maximum height is used: in the right view,
    d = (a x + b y + c + height) / (1 - a).
    """
    boxes, planes = [], []
    for surface in scene.surfaces:
        extent = None if surface.decal else extent_of(surface, scene.size, not from_right)
        boxes.append((0, 0, 0, 0) if extent is None else extent)
        plane = surface.plane if from_right else surface.plane.seen_from_right()
        highest = 0.0 if surface.relief is None else surface.relief.bounds()[1]
        planes.append((plane.a, plane.b, plane.c + (highest if from_right else highest * (1.0 + plane.a))))
    x0, y0, x1, y1 = np.array(boxes, np.float32).T[..., None]  # [S, 1] each
    a, b, c = np.array(planes, np.float32).T[..., None]
    nearest = a * x
    nearest += b * y + c
    return np.asarray((nearest > disparity) & (x > x0 - 1) & (x < x1) & (y >= y0) & (y < y1))
