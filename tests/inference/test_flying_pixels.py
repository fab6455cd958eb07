"""Flying pixels are found at edges, and nowhere else."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.geometry.camera import StereoCamera
from aanet.inference.flying_pixels import flying_pixels
from aanet.result import StereoResult

NEAR, FAR = 30.0, 12.0


def step_edge(angle: float = 0.0, blur: float = 0.0) -> np.ndarray:
    """A near half plane in front of a far one, blurred as networks do."""
    rows, columns = np.mgrid[:60, :80]
    side = (columns - 39.5) * np.cos(angle) + (rows - 29.5) * np.sin(angle)
    disparity = np.where(side < 0, NEAR, FAR).astype(np.float32)
    return cv2.GaussianBlur(disparity, (0, 0), blur) if blur else disparity


@pytest.mark.parametrize("angle", [0, 0.6, np.pi / 2])
@pytest.mark.parametrize("blur", [0.6, 1.0])
def test_a_cloud_of_a_step_edge_has_points_on_its_two_surfaces_only(angle, blur):
    disparity = step_edge(angle, blur)
    camera = StereoCamera(fx=60, cx=39.5, cy=29.5, baseline_m=1)
    left = np.zeros((60, 80, 3), np.uint8)
    result = StereoResult(disparity, np.ones_like(disparity), left, camera=camera)

    def between(points: np.ndarray) -> int:
        """The surfaces are at 2 m and 5 m."""
        return int(((points[:, 2] > 2.2) & (points[:, 2] < 4.4)).sum())

    everything, cleaned = result.cloud(flying_pixels=True)[0], result.cloud()[0]
    assert len(everything) == 60 * 80
    assert between(everything) > 50
    assert between(cleaned) == 0
    surfaces = (np.abs(disparity - NEAR) < 1) | (np.abs(disparity - FAR) < 1)
    assert len(cleaned) > 0.99 * surfaces.sum()


def test_sharp_edges_slopes_thin_objects_and_noise_stay():
    thin = np.full((60, 80), FAR, np.float32)
    thin[:, 40] = NEAR
    columns = np.arange(80, dtype=np.float32)[None].repeat(60, axis=0)
    noise = np.random.default_rng(0).normal(20, 0.3, (60, 80)).astype(np.float32)
    unknown = np.where(columns % 7 == 3, np.float32(np.nan), step_edge())
    for disparity in (step_edge(), step_edge(0.6), thin, 5 + 0.9 * columns, noise, unknown):
        assert not flying_pixels(disparity).any()


def test_disparities_are_not_changed():
    disparity = step_edge(blur=1)
    before = disparity.copy()
    assert flying_pixels(disparity).any()
    np.testing.assert_array_equal(disparity, before)
