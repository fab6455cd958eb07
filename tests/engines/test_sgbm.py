from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.engines.semi_global import SemiGlobalMatcher
from aanet.errors import AanetError
from aanet.inference.consistency import left_right_difference
from aanet.io.disparity import read_disparity
from aanet.io.images import as_rgb8, read_image

NAN = np.nan


def _pair(disparity: float, height: int = 80, width: int = 160) -> tuple[np.ndarray, np.ndarray]:
    texture = np.random.default_rng(1).integers(0, 256, (height, width + 100, 3), dtype=np.uint8)
    texture = cv2.GaussianBlur(texture, (0, 0), 1.2)
    shift = np.float32([[1, 0, -disparity], [0, 1, 0]])
    right = cv2.warpAffine(texture, shift, (width + 100, height), flags=cv2.INTER_CUBIC)
    return texture[:, :width], right[:, :width]


@pytest.mark.parametrize(("disparity", "max_disparity"), [(7.0, 64), (20.5, 100), (0.0, 16)])
def test_a_plane_of_known_disparity(disparity: float, max_disparity: int) -> None:
    left, right = _pair(disparity)
    found, confidence, consistent = SemiGlobalMatcher(max_disparity)(left, right)
    assert found.dtype == confidence.dtype == np.float32
    assert np.abs(found - disparity)[:, 2:-2].max() < 0.5, "the strip that only the left camera sees included"
    assert consistent[:, int(disparity) + 3 : -3].mean() > 0.97
    unseen = np.s_[:, : max(int(disparity) - 1, 0)]
    assert not consistent[unseen].any(), "what lies outside the right image cannot be matched"
    assert (confidence[unseen] <= 0.2).all()
    assert confidence[:, 40:-10].mean() > 0.6
    assert confidence.min() >= 0
    assert confidence.max() <= 1


def test_the_range_is_an_end() -> None:
    found, _, _ = SemiGlobalMatcher(20)(*_pair(27.0))
    assert found.max() <= 20


@pytest.mark.parametrize("size", [(1, 1), (7, 9), (40, 17)])
def test_small_and_blank_images_give_finite_maps(size: tuple[int, int]) -> None:
    blank = np.full((*size, 3), 128, np.uint8)
    for array in SemiGlobalMatcher(32)(blank, blank):
        assert array.shape == size
        assert np.isfinite(array).all()


def test_an_impossible_range_is_refused() -> None:
    with pytest.raises(AanetError, match="at least 1 pixel; got 0"):
        SemiGlobalMatcher(0)


def test_left_right_difference_agrees_with_one_pixel_at_a_time() -> None:
    rng = np.random.default_rng(4)
    left, right = (rng.uniform(0, 8, (6, 11)).astype(np.float32) for _ in range(2))
    left[2, 3], right[4, 4] = NAN, NAN
    difference = left_right_difference(left, right)
    for y, x in np.ndindex(left.shape):
        expected = np.inf
        column = x - left[y, x]
        if np.isfinite(column) and column > -0.5 and np.isfinite(right[y, round(float(column))]):
            expected = abs(left[y, x] - right[y, round(float(column))])
        assert difference[y, x] == pytest.approx(expected)


def test_real_pairs_keep_the_measured_accuracy(real_data: Path) -> None:
    scene = real_data / "middlebury/2003-cones"
    left, right = (as_rgb8(read_image(scene / name)) for name in ("im0.png", "im1.png"))
    truth = read_disparity(scene / "disp0.png")
    found, confidence, _ = SemiGlobalMatcher(64)(left, right)
    known = np.isfinite(truth)
    wrong = np.abs(found - truth)[known] > 2
    assert wrong.mean() < 0.09
    sure = confidence[known] > np.median(confidence[known])
    assert wrong[sure].mean() < 0.4 * wrong.mean(), "confidence must tell good pixels from bad ones"
