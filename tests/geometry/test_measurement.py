"""Lengths are those of the scene, and their uncertainty is that of the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aanet.errors import InputError
from aanet.geometry.camera import StereoCamera
from aanet.geometry.measurement import Length, disparity_noise
from aanet.result import StereoResult

CAMERA = StereoCamera(fx=500, fy=400, cx=31.5, cy=23.5, baseline_m=0.1, cx_right=36.5)


def result_of(disparity: np.ndarray, confidence: float = 0.95) -> StereoResult:
    shape = disparity.shape
    left = np.zeros((*shape, 3), np.uint8)
    return StereoResult(
        disparity.astype(np.float32), np.full(shape, confidence, np.float32), left, camera=CAMERA
    )


def scene() -> np.ndarray:
    """A wall at 2 m on the left, and one at 4 m on the right; their disparities are 20 and 7.5 pixels."""
    disparity = np.full((48, 64), 20.0)
    disparity[:, 32:] = 7.5
    return disparity


def test_depths_and_distances_are_those_of_the_points():
    result = result_of(scene())
    assert result.depth_at(10, 20).meters == pytest.approx(2)
    assert result.depth_at(50.4, 19.6).meters == pytest.approx(4)  # the nearest pixel
    points = result.points()
    for (x1, y1), (x2, y2) in (((3, 5), (20, 40)), ((10, 20), (50, 20)), ((60, 2), (40, 44))):
        expected = np.linalg.norm(points[y1, x1] - points[y2, x2])
        assert result.distance((x1, y1), (x2, y2)).meters == pytest.approx(expected, rel=1e-5)
        assert result.distance((x2, y2), (x1, y1)) == result.distance((x1, y1), (x2, y2))
    assert result.distance((3, 5), (3, 5)).meters == 0


def test_the_formula_of_the_documentation():
    noise = math.pi / (2 * math.sqrt(3) * math.atanh(0.95))
    result = result_of(scene())
    assert disparity_noise(result.disparity, result.confidence, 10, 20) == pytest.approx(noise)
    assert result.depth_at(10, 20).uncertainty == pytest.approx(2**2 * noise / (500 * 0.1))
    assert result.depth_at(50, 20).uncertainty == pytest.approx(4**2 * noise / (500 * 0.1))
    # Two points of one row on a wall: the errors of the depth hardly change their distance.
    near = result.distance((30, 23), (31, 23)).uncertainty
    assert near < 0.2 * result.depth_at(30, 23).uncertainty
    # One behind the other: they are all that matters.
    deep = result.distance((31, 23), (32, 23))
    both = math.hypot(result.depth_at(31, 23).uncertainty, result.depth_at(32, 23).uncertainty)
    assert deep.uncertainty == pytest.approx(both, rel=0.01)


def test_less_confidence_and_more_noise_are_more_uncertainty():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((48, 64))
    sure, unsure = (result_of(scene(), c).depth_at(10, 20).uncertainty for c in (0.95, 0.5))
    calm, noisy = (result_of(scene() + sigma * noise).depth_at(10, 20).uncertainty for sigma in (0.1, 1))
    assert unsure > 2 * sure
    assert sure < calm < 0.7 * noisy
    assert math.isfinite(result_of(scene(), 0.0).depth_at(10, 20).uncertainty)
    assert result_of(scene(), 1.0).depth_at(10, 20).uncertainty > 0


def test_an_inclined_plane_has_no_noise_and_neither_has_an_edge():
    columns = np.arange(64.0)[None].repeat(48, axis=0)
    confidence = np.full((48, 64), 0.95, np.float32)
    plane = disparity_noise((10 + 0.3 * columns).astype(np.float32), confidence, 20, 20)
    edge = disparity_noise(scene().astype(np.float32), confidence, 33, 20)
    assert plane == pytest.approx(edge, rel=1e-4)
    corner = disparity_noise(scene().astype(np.float32), confidence, 0, 47)
    assert plane == pytest.approx(corner, rel=1e-4)
    assert disparity_noise(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32), 0, 0) > 0


def test_the_uncertainty_is_the_scatter_of_repeated_measurements():
    """The confidence says what the noise is: 0.68 is a standard deviation of 1.1 pixels."""
    rng = np.random.default_rng(0)
    sigma = math.pi / (2 * math.sqrt(3) * math.atanh(0.9))
    lengths = []
    for _ in range(400):
        smooth = scene()
        smooth[:, :32] += sigma * rng.standard_normal()  # an error that neighbors share
        smooth[:, 32:] += sigma * rng.standard_normal()
        lengths.append(result_of(smooth, 0.9).distance((10, 10), (50, 40)))
    scatter = np.std([length.meters for length in lengths])
    assert scatter == pytest.approx(np.median([length.uncertainty for length in lengths]), rel=0.15)


def test_lengths_are_written_with_two_digits_of_uncertainty():
    assert str(Length(2.34567, 0.0123)) == "2.346 ± 0.012 m"
    assert str(Length(23.4, 1.26)) == "23.4 ± 1.3 m"
    assert str(Length(230.4, 12.6)) == "230 ± 13 m"
    assert str(Length(0.5, 0.0)) == "0.5000 ± 0.0000 m"


def test_pixels_without_a_depth_are_one_sentence():
    disparity = scene()
    disparity[5, 5], disparity[6, 6] = np.nan, -5
    result = result_of(disparity)
    for pixel, message in (
        ((64, 0), r"\(64, 0\) is not in the image of 64×48 pixels"),
        ((-1, 0), "is not in the image"),
        ((5, 5), r"\(5, 5\) has no depth: its disparity is unknown or that of infinity"),
        ((6, 6), "has no depth"),
        ((math.nan, 0), "given by two numbers"),
    ):
        with pytest.raises(InputError, match=message):
            result.depth_at(*pixel)
    with pytest.raises(InputError, match="given by two numbers, x and y; got 5"):
        result.distance(5, (1, 2))
    result.camera = None
    with pytest.raises(InputError, match="A distance needs a camera"):
        result.distance((1, 1), (2, 2))
