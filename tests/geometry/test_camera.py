from __future__ import annotations

import dataclasses
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aanet.errors import AanetError
from aanet.geometry.calibration import load_calibration
from aanet.geometry.camera import StereoCamera
from aanet.io.disparity import read_disparity, write_disparity

CAMERA = StereoCamera(
    fx=310.0, fy=305.0, cx=78.4, cy=61.2, cx_right=84.9, baseline_m=0.12, width=160, height=120
)
CENTER, RADIUS = np.array([0.1, -0.05, 2.0]), 0.4


def _ball_before_a_wall(camera: StereoCamera) -> tuple[np.ndarray, np.ndarray]:
    """Points where rays through the left pixels meet a ball or a wall at Z = 4 m, and their disparities."""
    y, x = np.mgrid[: camera.height, : camera.width].astype(float)
    rays = np.dstack([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, np.ones_like(x)])
    # |t ray − center|² = radius², the nearer root.
    a, b, c = (rays**2).sum(2), rays @ CENTER, CENTER @ CENTER - RADIUS**2
    discriminant = b**2 - a * c
    t = np.where(discriminant > 0, (b - np.sqrt(np.maximum(discriminant, 0))) / a, 4.0)
    points = rays * t[..., None]
    right_x = camera.fx * (points[..., 0] - camera.baseline_m) / points[..., 2] + camera.cx_right
    return points, x - right_x


def test_distances_in_a_scene_of_known_geometry(tmp_path: Path) -> None:
    points, disparity = _ball_before_a_wall(CAMERA)
    write_disparity(tmp_path / "d.png", disparity)
    for seen in (disparity.astype(np.float32), read_disparity(tmp_path / "d.png")):
        np.testing.assert_allclose(CAMERA.depth(seen), points[..., 2], rtol=1e-3)
        found = CAMERA.points(seen).astype(float)
        np.testing.assert_allclose(found, points, rtol=1e-3, atol=1e-3 * 2)
        on_ball = points[..., 2] < 3
        assert on_ball.sum() > 3000
        radii = np.linalg.norm(found[on_ball] - CENTER, axis=1)
        assert np.median(radii) == pytest.approx(RADIUS, rel=1e-3)


def test_vectorised_points_agree_with_one_pixel_at_a_time() -> None:
    rng = np.random.default_rng(2)
    camera = dataclasses.replace(CAMERA, width=7, height=5)
    disparity = rng.uniform(1, 60, (5, 7)).astype(np.float32)
    points = camera.points(disparity)
    for v, u in np.ndindex(5, 7):
        z = 310.0 * 0.12 / (float(disparity[v, u]) + 84.9 - 78.4)
        np.testing.assert_allclose(points[v, u], [(u - 78.4) * z / 310, (v - 61.2) * z / 305, z], rtol=1e-5)


def test_what_has_no_depth_is_nan() -> None:
    camera = StereoCamera(fx=100, cx=5, cy=5, baseline_m=0.1, cx_right=2)
    depth = camera.depth(np.array([[np.nan, np.inf, 0, 2.9, 3.0, 3.1, 13]], np.float32))
    assert np.isnan(depth[0, :5]).all(), "infinity lies at a disparity of 3 px here"
    np.testing.assert_allclose(depth[0, 5:], [100, 1], rtol=1e-4)
    assert np.isnan(camera.points(np.zeros((2, 2), np.float32))).all()


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 190), st.floats(-30, 30))
def test_disparity_is_the_inverse_of_depth(disparity: float, shift: float) -> None:
    camera = StereoCamera(fx=700, cx=300, cy=200, baseline_m=0.2, cx_right=300 + shift)
    seen = np.array([[disparity]], np.float32)
    if disparity + camera.doffs > 0.01:
        np.testing.assert_allclose(camera.disparity(camera.depth(seen)), seen, rtol=1e-4, atol=1e-4)
    assert np.isnan(camera.disparity(np.array([[0.0, -1.0, np.nan, np.inf]], np.float32))).all()


def test_resizing_the_camera_goes_with_resizing_the_disparity() -> None:
    _, disparity = _ball_before_a_wall(CAMERA)
    disparity = disparity.astype(np.float32)
    small = CAMERA.resized(80, 60)
    # cv2 averages 2×2 pixel areas here, which is the convention x' = (x + ½) s − ½.
    shrunk = cv2.resize(disparity, (80, 60), interpolation=cv2.INTER_AREA) * 0.5
    points = cv2.resize(CAMERA.points(disparity), (80, 60), interpolation=cv2.INTER_AREA)
    flat = cv2.erode((points[..., 2] > 3.99).astype(np.uint8), np.ones((3, 3))) > 0
    assert flat.sum() > 1000
    np.testing.assert_allclose(small.points(shrunk)[flat], points[flat], rtol=1e-4, atol=1e-4)
    there_and_back = small.resized(160, 120)
    for field in dataclasses.fields(StereoCamera):
        assert getattr(there_and_back, field.name) == pytest.approx(getattr(CAMERA, field.name))


def test_cropping_the_camera_goes_with_cropping_the_disparity() -> None:
    _, disparity = _ball_before_a_wall(CAMERA)
    disparity = disparity.astype(np.float32)
    window = CAMERA.cropped(30, 20, 50, 40)
    np.testing.assert_allclose(
        window.points(disparity[20:60, 30:80]), CAMERA.points(disparity)[20:60, 30:80], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("camera", [CAMERA, StereoCamera(fx=1 / 3, cx=0.1, cy=-2.0, baseline_m=1e-3)])
def test_json_keeps_every_bit(tmp_path: Path, camera: StereoCamera) -> None:
    camera.save(tmp_path / "camera.json")
    assert load_calibration(tmp_path / "camera.json").camera == camera


def test_mistakes_are_named() -> None:
    with pytest.raises(AanetError, match="160×120 pixels, the map has 80×60"):
        CAMERA.depth(np.ones((60, 80), np.float32))
    with pytest.raises(AanetError, match=r"baseline_m must be a positive number.*got -0\.1"):
        StereoCamera(fx=1, cx=1, cy=1, baseline_m=-0.1)
    with pytest.raises(AanetError, match="does not state its image size"):
        StereoCamera(fx=1, cx=1, cy=1, baseline_m=1).resized(10, 10)
