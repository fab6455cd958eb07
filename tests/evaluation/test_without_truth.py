"""Scores without ground truth: closed forms, a loop, and what declaring pixels occluded cannot gain."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.evaluation.without_truth import SSIM_WEIGHT, compare, photometric_error
from aanet.result import StereoResult
from aanet.typing import FloatMap, Image

HEIGHT, WIDTH, DISPARITY = 12, 40, 4


@pytest.fixture
def pair() -> tuple[Image, Image]:
    """Noise whose right view is shifted by `DISPARITY`."""
    wall = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH + DISPARITY, 3), np.uint8)
    return wall[:, :WIDTH], wall[:, DISPARITY:]


def result(pair: tuple[Image, Image], left: float | FloatMap, right: float | FloatMap) -> StereoResult:
    maps = [np.broadcast_to(np.float32(each), (HEIGHT, WIDTH)).astype(np.float32) for each in (left, right)]
    return StereoResult(
        disparity=maps[0],
        confidence=np.ones_like(maps[0]),
        left=pair[0],
        right=pair[1],
        right_disparity=maps[1],
    )


def test_the_true_disparity_has_no_photometric_error(pair: tuple[Image, Image]) -> None:
    error = photometric_error(*pair, np.full((HEIGHT, WIDTH), DISPARITY, np.float32))
    np.testing.assert_allclose(error[:, DISPARITY + 1 :], 0, atol=1e-6)
    assert photometric_error(*pair, np.full((HEIGHT, WIDTH), 7, np.float32)).mean() > 0.2


def test_of_two_uniform_images_the_error_has_a_closed_form() -> None:
    left, right = (np.full((HEIGHT, WIDTH, 3), value, np.uint8) for value in (51, 102))
    error = photometric_error(left, right, np.zeros((HEIGHT, WIDTH), np.float32))
    ssim = (2 * 0.2 * 0.4 + 1e-4) / (0.2**2 + 0.4**2 + 1e-4)
    np.testing.assert_allclose(error, SSIM_WEIGHT * (1 - ssim) / 2 + (1 - SSIM_WEIGHT) * 0.2, rtol=1e-4)


def test_ssim_agrees_with_a_loop_over_the_window(pair: tuple[Image, Image]) -> None:
    disparity = np.full((HEIGHT, WIDTH), 2, np.float32)
    y, x = 5, 20
    terms = []
    for channel in range(3):
        a = pair[0][y - 1 : y + 2, x - 1 : x + 2, channel].astype(float) / 255
        b = pair[1][y - 1 : y + 2, x - 3 : x, channel].astype(float) / 255
        covariance = (a * b).mean() - a.mean() * b.mean()
        ssim = (2 * a.mean() * b.mean() + 1e-4) * (2 * covariance + 9e-4)
        ssim /= (a.mean() ** 2 + b.mean() ** 2 + 1e-4) * (a.var() + b.var() + 9e-4)
        terms.append(SSIM_WEIGHT * (1 - ssim) / 2 + (1 - SSIM_WEIGHT) * abs(a[1, 1] - b[1, 1]))
    assert photometric_error(*pair, disparity)[y, x] == pytest.approx(np.mean(terms), rel=1e-4)


def test_the_better_map_has_more_agreement_and_a_lower_error(pair: tuple[Image, Image]) -> None:
    wrong, right = compare(result(pair, 9, 9), result(pair, DISPARITY, DISPARITY + 0.5))
    assert wrong.agreement == pytest.approx((WIDTH - 9) / WIDTH)
    assert right.agreement == pytest.approx((WIDTH - DISPARITY) / WIDTH)
    assert right.photometric < 0.1 * wrong.photometric


def test_a_map_cannot_lower_its_error_by_declaring_pixels_occluded(pair: tuple[Image, Image]) -> None:
    half = np.full((HEIGHT, WIDTH), DISPARITY, np.float32)
    half[:, WIDTH // 2 :] = 9  # wrong there, and contradicted by the right map
    complete, doubtful = compare(result(pair, DISPARITY, DISPARITY), result(pair, half, DISPARITY))
    assert doubtful.agreement < complete.agreement
    assert doubtful.photometric > 10 * complete.photometric


def test_maps_that_are_contradicted_everywhere_are_scored_over_all_pixels(pair: tuple[Image, Image]) -> None:
    first, second = compare(result(pair, 2, 30), result(pair, 3, 30))
    assert first.agreement == second.agreement == 0
    assert np.isfinite([first.photometric, second.photometric]).all()
