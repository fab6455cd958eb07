"""The renderer against closed forms and naive twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.synthetic import Scene, Surface, SyntheticWorld, render_scene
from aanet.synthetic.library import flat
from aanet.synthetic.placement import Facet, Material, Viewpoint, draw_mask, place_facet
from aanet.synthetic.render import RenderedPair
from aanet.synthetic.scene_builder import SceneBuilder
from aanet.synthetic.surfaces import Dome, Folds, Plane
from aanet.synthetic.world import SCENE_KINDS
from helpers.synthetic_sheets import SIZE, TILE, grid, sheet


def warped_error(pair: RenderedPair) -> np.ndarray:
    x, y = grid(pair.disparity.shape)
    back = cv2.remap(pair.right, x - pair.disparity, y, cv2.INTER_LINEAR)
    return np.abs(back - pair.left).mean(axis=2)


def near_edges(disparity: np.ndarray, visible: np.ndarray) -> np.ndarray:
    steps = cv2.morphologyEx(disparity, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 1.5
    return cv2.dilate((steps | ~visible).astype(np.uint8), np.ones((7, 7), np.uint8)) > 0


def matte(scene: Scene) -> Scene:
    surfaces = tuple(replace(surface, gloss=None, reflection=None) for surface in scene.surfaces)
    return replace(scene, surfaces=surfaces)


@pytest.mark.parametrize(("a", "b", "c"), [(0.0, 0.0, 7.25), (0.11, -0.06, 14.5), (-0.4, 0.2, 80.0)])
def test_a_plane_has_its_closed_form_in_both_views(a: float, b: float, c: float) -> None:
    pair = render_scene(Scene("test", SIZE, (sheet(Plane(a, b, c)),)))
    x, y = (v.astype(np.float64) for v in grid())
    np.testing.assert_allclose(pair.disparity, a * x + b * y + c, atol=1e-4)
    np.testing.assert_allclose(pair.right_disparity, (a * x + b * y + c) / (1 - a), atol=1e-4)


def test_a_plane_in_space_is_seen_where_the_pinhole_says() -> None:
    turn, _ = cv2.Rodrigues(np.array([0.1, -0.3, 0.02]))
    view = Viewpoint(180.0, 70.0, 33.0, SIZE, 1.5, turn)
    builder = SceneBuilder(view, np.random.default_rng(0), "test", np.array([0.0, 0.0, -1.0]), 0.6)
    corners = np.array([[-30.0, 1.2, 4.0], [30.0, 1.2, 4.5], [30.0, -40.0, 9.0]])
    corners = np.vstack([corners, corners[0] + corners[2] - corners[1]])
    builder.background.append([Facet([corners], Material(TILE))])
    scene = builder.build(40.0)
    pair = render_scene(scene)
    assert pair.disparity.max() == pytest.approx(40.0, abs=0.3)
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    inverse_depth = np.empty(SIZE)
    for row in range(SIZE[0]):
        for column in range(SIZE[1]):
            ray = np.array([(column - view.cx) / view.focal, (row - view.cy) / view.focal, 1.0])
            inverse_depth[row, column] = (normal @ ray) / (normal @ corners[0])
    covered = pair.disparity > -np.inf
    ratio = pair.disparity[covered] / inverse_depth[covered]  # focal × baseline, one number for all pixels
    assert covered.mean() > 0.4
    np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-4)


@pytest.mark.parametrize(
    "relief",
    [
        Dome(60.0, 30.0, 40.0, 30.0, 6.0),
        Dome(60.0, 30.0, 45.0, 1e6, 9.0),
        Folds(np.array([[4.0, 0.1, 0.03, 0.5], [2.0, -0.05, 0.12, 2.0]])),
    ],
    ids=["ball", "cylinder", "cloth"],
)
def test_newton_finds_the_left_position_on_curved_surfaces(relief: Dome | Folds) -> None:
    surface = sheet(Plane(0.05, -0.02, 20.0), relief=relief)
    x, y = grid()
    found = surface.left_x(x - surface.disparity(x, y), y)
    assert np.abs(found - x).max() < 5e-4


@pytest.mark.parametrize(
    "relief", [Dome(60.0, 30.0, 40.0, 30.0, 6.0), Folds(np.array([[4.0, 0.1, 0.03, 0.5]]))]
)
def test_slopes_of_a_relief_are_its_derivatives(relief: Dome | Folds) -> None:
    x, y = (v.astype(np.float32) for v in grid())
    step = np.float32(0.25)
    rise = (relief.height_and_slope(x + step, y)[0] - relief.height_and_slope(x - step, y)[0]) / (2 * step)
    climb = (relief.height_and_slope(x, y + step)[0] - relief.height_and_slope(x, y - step)[0]) / (2 * step)
    smooth = np.hypot((x - 60) / 40, (y - 30) / 30) < 0.9
    gx, gy = relief.gradient(x, y)
    np.testing.assert_allclose(relief.height_and_slope(x, y)[1][smooth], rise[smooth], atol=4e-3)
    np.testing.assert_allclose(gx[smooth], rise[smooth], atol=4e-3)
    np.testing.assert_allclose(gy[smooth], climb[smooth], atol=4e-3)


@pytest.mark.parametrize("kind", SCENE_KINDS)
def test_the_right_view_warped_by_the_disparity_is_the_left_one(kind: str) -> None:
    world = SyntheticWorld((160, 320), 128, seed=5, kinds={kind: 1.0})
    medians, high = [], []
    for index in range(4):
        pair = render_scene(matte(world.scene(index)))
        error = warped_error(pair)
        medians.append(np.median(error[pair.visible]))
        high.append(np.percentile(error[~near_edges(pair.disparity, pair.visible)], 90))
    assert max(medians) < 2.0
    assert np.median(high) < 4.0


def test_scenes_cut_out_of_real_photographs_warp_onto_each_other(real_data: Path) -> None:
    world = SyntheticWorld((160, 320), 96, seed=4, textures=real_data / "textures", kinds={"photo": 1.0})
    for index in range(3):
        pair = render_scene(world.scene(index))
        assert np.median(warped_error(pair)[pair.visible]) < 2.0


@pytest.mark.parametrize("kind", SCENE_KINDS)
def test_the_disparity_of_the_right_view_is_that_of_the_left_at_matching_pixels(kind: str) -> None:
    world = SyntheticWorld((120, 240), 96, seed=7, kinds={kind: 1.0})
    for index in range(3):
        pair = render_scene(world.scene(index))
        x, y = grid(pair.disparity.shape)
        for sign, here, there, visible in (
            (-1, pair.disparity, pair.right_disparity, pair.visible),
            (1, pair.right_disparity, pair.disparity, pair.right_visible),
        ):
            found = cv2.remap(there, x + sign * here, y, cv2.INTER_LINEAR)
            inside = ~near_edges(here, visible)
            assert inside.mean() > 0.1
            assert np.percentile(np.abs(found - here)[inside], 98) < 0.05


def naive_mask(surface: Surface, x: float, y: float) -> float:
    """Bilinear coverage of one point, zero beyond the mask."""
    u, v, _ = surface.mask_from_left @ np.array([x, y, 1.0])
    i, j = int(np.floor(u)), int(np.floor(v))
    total = 0.0
    for di in (0, 1):
        for dj in (0, 1):
            if 0 <= i + di < surface.mask.shape[1] and 0 <= j + dj < surface.mask.shape[0]:
                share = (1 - abs(u - i - di)) * (1 - abs(v - j - dj))
                total += share * float(surface.mask[j + dj, i + di])
    return total


def naive_left_x(surface: Surface, right_x: float, y: float) -> float:
    """By bisection, x - d(x) rising with x; a plane by its own linear equation."""
    a, b, c = surface.plane.a, surface.plane.b, surface.plane.c
    if surface.relief is None:
        return (right_x + b * y + c) / (1 - a)
    low, high = right_x - 20.0, right_x + 100.0
    for _ in range(24):
        middle = (low + high) / 2
        height = surface.relief.height_and_slope(
            np.full((1, 1), middle, np.float32), np.full((1, 1), y, np.float32)
        )
        d = a * middle + b * y + c + float(height[0][0, 0])
        low, high = (middle, high) if middle - d < right_x else (low, middle)
    return low


def naive_front(scene: Scene, right_x: float, y: float) -> tuple[float, int]:
    """Disparity and number of the nearest surface that the right camera sees at a point."""
    best = (-np.inf, -1)
    for number, surface in enumerate(scene.surfaces):
        left = naive_left_x(surface, right_x, y)
        if naive_mask(surface, left, y) >= 0.5:
            best = max(best, (left - right_x, number))
    return best


@pytest.mark.parametrize("kind", ["photo", "flying"])
def test_occlusion_agrees_with_a_naive_z_buffer(kind: str) -> None:
    world = SyntheticWorld((32, 56), 40, seed=2, kinds={kind: 1.0})
    scene = world.scene(1)
    assert not any(surface.decal or surface.group >= 0 for surface in scene.surfaces)
    pair = render_scene(scene)
    agree, count = 0, 0
    for row in (3, 14, 25):
        for column in range(56):
            d = float(pair.disparity[row, column])
            there = column - d
            seen = 0 <= there <= 55 and naive_front(scene, there, row)[0] <= d + 0.01
            agree += seen == pair.visible[row, column]
            count += 1
    assert agree / count > 0.99
    assert 0.2 < pair.visible.mean() < 0.98


def test_the_right_label_is_the_nearest_surface_of_a_naive_z_buffer() -> None:
    scene = SyntheticWorld((32, 56), 40, seed=2, kinds={"photo": 1.0}).scene(3)
    pair = render_scene(scene)
    naive = np.array(
        [[naive_front(scene, column, row)[0] for column in range(56)] for row in range(0, 32, 6)]
    )
    assert (np.abs(naive - pair.right_disparity[::6]) < 0.01).mean() > 0.99


def square(x0: int, x1: int, slope: float) -> np.ndarray:
    """An anti-aliased strip with slanted sides, on the left pixel grid."""
    fine = np.zeros((SIZE[0] * 8, SIZE[1] * 8), np.uint8)
    corners = (
        np.array([[x0, 0], [x1, 0], [x1 + slope * SIZE[0], SIZE[0]], [x0 + slope * SIZE[0], SIZE[0]]]) * 8
    )
    cv2.fillPoly(fine, [corners.astype(np.int32)], 255)
    return cv2.resize(fine, SIZE[::-1], interpolation=cv2.INTER_AREA).astype(np.float32) / 255


def test_edges_blend_colors_but_never_disparities() -> None:
    black, white = flat((0, 0, 0)), flat((1, 1, 1))
    front = sheet(Plane(0.0, 0.0, 20.5), square(60, 90, 0.2), white)
    pair = render_scene(Scene("test", SIZE, (sheet(Plane(0.0, 0.0, 5.0), None, black), front)))
    for color, disparity in ((pair.left, pair.disparity), (pair.right, pair.right_disparity)):
        assert set(np.unique(disparity)) == {np.float32(5.0), np.float32(20.5)}
        gray = color[..., 0]
        between = (gray > 10) & (gray < 245)
        assert 0.5 * SIZE[0] < between.sum() < 6 * SIZE[0]  # one or two pixels along each of two edges
        np.testing.assert_array_equal(disparity > 10, gray >= 127.4)


def test_occlusion_behind_a_strip_is_as_wide_as_the_step_in_disparity() -> None:
    front = sheet(Plane(0.0, 0.0, 25.0), square(60, 90, 0.0))
    pair = render_scene(Scene("test", SIZE, (sheet(Plane(0.0, 0.0, 5.0)), front)))
    row = pair.visible[36]
    assert not row[:5].any()  # leaves the right view
    assert row[5:39].all()
    assert not row[41:59].any()  # the strip moves 20 px further than what is behind it
    assert row[61:].all()
    right = pair.right_visible[36]
    assert right[35:64].all()
    assert not right[67:84].any()
    assert right[86:138].all()


def test_faces_that_share_an_edge_do_not_hide_each_other() -> None:
    world = SyntheticWorld((120, 240), 64, seed=11, kinds={"room": 1.0})
    walls = [s for s in world.scene(0).surfaces if s.group == 1 and not s.decal]
    assert len(walls) >= 3
    pair = render_scene(Scene("test", (120, 240), tuple(walls)))
    x, _ = grid((120, 240))
    inside = (x - pair.disparity >= 0) & (x - pair.disparity <= 239)
    np.testing.assert_array_equal(pair.visible, inside)


def test_a_decal_changes_color_and_nothing_else() -> None:
    wall, front = sheet(Plane(0.0, 0.0, 8.0)), sheet(Plane(0.0, 0.0, 20.0), square(70, 80, 0.0))
    decal = sheet(Plane(0.0, 0.0, 8.0), square(50, 90, 0.0), flat((1, 0, 0)), decal=True)
    with_decal = render_scene(Scene("test", SIZE, (wall, decal, front)))
    without = render_scene(Scene("test", SIZE, (wall, front)))
    np.testing.assert_array_equal(with_decal.disparity, without.disparity)
    np.testing.assert_array_equal(with_decal.visible, without.visible)
    np.testing.assert_allclose(with_decal.left[36, 55], (255, 0, 0), atol=1e-3)
    np.testing.assert_array_equal(with_decal.left[36, 75], without.left[36, 75])


@pytest.mark.parametrize("blur", [0.0, 1.0, 2.5, 6.0])
def test_a_mask_lies_where_its_outline_is_however_coarse_its_grid(blur: float) -> None:
    view = Viewpoint(100.0, 72.0, 36.0, SIZE, 1.5, np.eye(3))
    corners = np.array([[-0.31, -0.12, 1.0], [0.27, -0.12, 1.0], [0.27, 0.15, 1.0], [-0.31, 0.15, 1.0]])
    facet = Facet([corners], Material(TILE), blur=blur)
    place = place_facet(facet, view)
    assert place is not None
    mask, mask_from_left = draw_mask(facet, place, SIZE, np.random.default_rng(2))
    x, y = grid()
    u, v = ((mask_from_left[k, k] * w + mask_from_left[k, 2]).astype(np.float32) for k, w in ((0, x), (1, y)))
    cover = cv2.remap(mask, u, v, cv2.INTER_LINEAR)
    assert (cover * x).sum() / cover.sum() == pytest.approx(70.0, abs=0.3)
    assert (cover * y).sum() / cover.sum() == pytest.approx(37.5, abs=0.3)
    assert cover.sum() == pytest.approx(58 * 27, rel=0.06)
