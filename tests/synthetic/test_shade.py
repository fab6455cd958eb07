"""Textures, highlights and reflections on surfaces."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from aanet.synthetic import Scene, render_scene
from aanet.synthetic.shade import mirrored_texels, share_inside
from aanet.synthetic.surfaces import Gloss, Plane, Reflection, Texture
from helpers.synthetic_sheets import SIZE, TILE, grid, sheet


def test_a_highlight_has_a_disparity_of_its_own() -> None:
    gloss = Gloss(x=70.0, y=36.0, disparity=3.0, width=6.0, height=6.0, strength=0.8)
    plain = render_scene(Scene("test", SIZE, (sheet(Plane(0.0, 0.0, 12.0)),)))
    shiny = render_scene(Scene("test", SIZE, (sheet(Plane(0.0, 0.0, 12.0), gloss=gloss),)))
    left, right = (
        np.asarray(b - a)[36, :, 0] for a, b in ((plain.left, shiny.left), (plain.right, shiny.right))
    )
    assert (left.argmax(), right.argmax()) == (70, 67)


def test_a_reflection_has_a_disparity_of_its_own_and_the_surface_keeps_its_own() -> None:
    gray, plane = Texture(np.full((1, 1, 4), 100, np.uint8)), Plane(0.0, 0.0, 12.0)
    at = np.array([[1.0, 0.0, 30.0], [0.0, 1.0, 50.0], [0.0, 0.0, 1.0]])
    mirror = Reflection(TILE, at, disparity=5.0, strength=0.4)
    matte = render_scene(Scene("test", SIZE, (sheet(plane, None, gray),)))
    shiny = render_scene(Scene("test", SIZE, (sheet(plane, None, gray, reflection=mirror),)))
    tile = TILE.image[50 : 50 + SIZE[0], 30 : 30 + SIZE[1], :3].astype(np.float64)
    np.testing.assert_allclose(shiny.left, 60.0 + 0.4 * tile, atol=0.5)
    np.testing.assert_allclose(shiny.right[:, :-5], shiny.left[:, 5:], atol=0.5)
    np.testing.assert_array_equal(shiny.disparity, matte.disparity)


def test_a_reflection_is_squeezed_without_aliasing_and_keeps_to_its_surface() -> None:
    stripes = np.zeros((512, 512, 4), np.uint8)
    stripes[:, ::2] = 255
    squeezed = Reflection(Texture(stripes), np.diag([4.1, 4.1, 1.0]), 3.0, 1.0)
    mask = np.zeros(SIZE, np.float32)
    mask[20:50, 40:90] = 1.0
    black = Texture(np.zeros((1, 1, 4), np.uint8))
    back, front = sheet(Plane(0.0, 0.0, 2.0), None, black), sheet(Plane(0.0, 0.0, 9.0), mask, black)
    left = render_scene(Scene("test", SIZE, (back, replace(front, reflection=squeezed)))).left
    assert np.abs(left[22:48, 42:88] - 127.5).max() < 3
    assert left[:18].max() == left[:, :38].max() == 0


def test_distant_ground_does_not_alias() -> None:
    stripes = np.zeros((512, 512, 4), np.uint8)
    stripes[:, ::2] = 255  # the finest pattern there is: any sampling at 1 / 8 of the density must be gray
    surface = replace(
        sheet(Plane(0.0, 0.0, 4.0), None, Texture(stripes)), texture_from_left=np.diag([8.1, 8.1, 1.0])
    )
    pair = render_scene(Scene("test", SIZE, (surface,)))
    assert np.abs(pair.left - 127.5).max() < 3


def test_a_texture_repeats_by_mirroring_as_opencv_does() -> None:
    texture = np.random.default_rng(1).integers(0, 255, (40, 50, 4), np.uint8)
    matrix = np.array([[0.9, 0.1, -163.0], [-0.05, 1.1, 31.0], [1e-4, 2e-4, 1.0]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    expected = cv2.warpPerspective(texture, matrix, (90, 70), flags=flags, borderMode=cv2.BORDER_REFLECT_101)
    x, y = grid((70, 90))
    u, v = mirrored_texels(matrix, x[:1], y[:, :1], (40, 50))
    assert min(u.min(), v.min()) >= 0
    assert u.max() <= 49
    assert v.max() <= 39
    error = np.abs(cv2.remap(texture, u, v, cv2.INTER_LINEAR).astype(int) - expected)
    assert error.max() <= 10  # cv2.remap rounds positions to 1/32 px
    assert error.mean() < 1.5


def test_positions_beyond_the_horizon_are_finite() -> None:
    x, y = grid()
    u, v = mirrored_texels(np.array([[9.0, 0, 0], [0, 3.0, 0], [0, 0.01, -0.3]]), x[:1], y[:, :1], (64, 32))
    assert np.isfinite(u).all()
    assert np.isfinite(v).all()
    assert min(u.min(), v.min()) >= 0
    assert max(u.max() - 31, v.max() - 63) <= 0


@pytest.mark.parametrize(
    ("size", "shift", "share"),
    [
        ((11, 11), 0.0, 1.0),
        ((11, 11), -5.0, 0.5),
        ((11, 11), -50.0, 0.0),
        ((1, 1), 0.0, 1.0),
        ((1, 1), -50.0, 0.0),
    ],
)
def test_the_share_of_a_window_inside_a_texture(size: tuple[int, int], shift: float, share: float) -> None:
    """A surface may show in a single pixel, which has no extent to take a share of."""
    matrix = np.array([[1.0, 0.0, shift], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert share_inside(np.zeros((64, 64, 4), np.uint8), matrix, size) == pytest.approx(share)
