from __future__ import annotations

import numpy as np
import pytest

from aanet.engines import cross_scale
from aanet.engines.cross_scale import CrossScaleMatcher
from aanet.errors import InputError, UnsupportedError
from aanet.matcher import StereoMatcher
from aanet.typing import FloatMap, Image


@pytest.mark.parametrize(("scales", "regularization"), [(1, 0.3), (2, 0.0), (3, 1.0), (5, 0.3)])
def test_the_matrix_solves_the_minimization_over_all_scales(scales: int, regularization: float) -> None:
    # Equation 15 as one least-squares problem, with arbitrary costs and normalized weights.
    random = np.random.default_rng(scales)
    rows, values = [], []
    aggregated = np.zeros(scales)
    for scale in range(scales):
        costs, weights = random.random(7), random.random(7)
        weights /= weights.sum()
        aggregated[scale] = weights @ costs
        for cost, weight in zip(costs, weights, strict=True):
            rows.append(np.sqrt(weight) * np.eye(scales)[scale])
            values.append(np.sqrt(weight) * cost)
    for scale in range(1, scales):
        rows.append(np.sqrt(regularization) * (np.eye(scales)[scale] - np.eye(scales)[scale - 1]))
        values.append(0.0)
    solution = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    combined = cross_scale.combination_matrix(scales, regularization) @ aggregated
    np.testing.assert_allclose(combined, solution, atol=1e-12)


def test_census_sets_a_bit_for_every_darker_neighbor() -> None:
    gray = np.random.default_rng(0).integers(0, 256, (12, 14), dtype=np.uint8)
    bits = "".join(
        str(int(gray[6 + row, 7 + column] < gray[6, 7]))
        for row in range(-3, 4)
        for column in range(-4, 5)
        if (row, column) != (0, 0)
    )
    assert int(cross_scale.census(gray)[6, 7]) == int(bits, 2)


def test_hamming_counts_different_bits() -> None:
    one = np.array([[0, 2**61 + 5]], dtype=np.uint64)
    other = np.array([[2**62 - 1, 4]], dtype=np.uint64)
    np.testing.assert_allclose(cross_scale.hamming(one, other), [[1, 2 / 62]], rtol=1e-6)


def test_the_guided_filter_agrees_with_its_explicit_weights() -> None:
    # He et al., equation 11: the output is a weighted sum over the window, with weights of the guide alone.
    random = np.random.default_rng(1)
    guide = random.random((25, 27)).astype(np.float32)
    values = random.random((25, 27)).astype(np.float32)
    radius, smoothness = 5, 1e-3
    y, x = 12, 13
    expected = 0.0
    count = (2 * radius + 1) ** 2
    for wy in range(y - radius, y + radius + 1):
        for wx in range(x - radius, x + radius + 1):
            window = (slice(wy - radius, wy + radius + 1), slice(wx - radius, wx + radius + 1))
            mean, variance = float(guide[window].mean()), float(guide[window].var())
            weights = 1 + (guide[y, x] - mean) * (guide[window] - mean) / (variance + smoothness)
            expected += float((weights * values[window]).sum()) / count**2
    assert cross_scale.guided_filter(guide)(values)[y, x] == pytest.approx(expected, abs=1e-5)


def test_the_best_candidate_is_the_vertex_of_a_parabola() -> None:
    true = np.array([[3.3, 0.0, 7.0]])
    volume = ((np.arange(8)[:, None, None] - true) ** 2).astype(np.float32)
    np.testing.assert_allclose(cross_scale.best_candidate(volume), true, atol=1e-5)


def test_costs_seen_from_the_right_are_those_of_the_same_point() -> None:
    volume = np.random.default_rng(2).random((5, 3, 9)).astype(np.float32)
    moved = cross_scale.seen_from_right(volume)
    for candidate in range(5):
        for column in range(9 - candidate):
            np.testing.assert_array_equal(
                moved[candidate, :, column], volume[candidate, :, column + candidate]
            )


def _textured_pair(disparity: FloatMap) -> tuple[Image, Image]:
    """A left view with the given disparity of every pixel of the right one, from a random texture."""
    random = np.random.default_rng(3)
    height, width = disparity.shape
    right = random.integers(0, 256, (height, width), dtype=np.uint8)
    left = random.integers(0, 256, (height, width), dtype=np.uint8)
    for row in range(height):
        for column in np.argsort(disparity[row]):  # near surfaces last
            at = column + int(disparity[row, column])
            if at < width:
                left[row, at] = right[row, column]
    return np.dstack([left] * 3), np.dstack([right] * 3)


def test_two_surfaces_are_found_to_a_fraction_of_a_pixel() -> None:
    on_right = np.full((60, 120), 4.0, dtype=np.float32)
    on_right[20:40, 40:80] = 11.0
    left, right = _textured_pair(on_right)
    found, confidence, consistent = CrossScaleMatcher(32)(left, right)
    assert np.median(np.abs(found[24:36, 56:86] - 11)) < 0.1
    assert np.median(np.abs(found[:12, 20:] - 4)) < 0.1
    assert consistent.mean() > 0.7
    assert confidence[24:36, 56:86].mean() > confidence[24:36, :4].mean()


def test_a_textureless_area_is_filled_by_the_coarse_scales() -> None:
    random = np.random.default_rng(4)
    right = random.integers(0, 256, (96, 160), dtype=np.uint8)
    right[30:66, 50:110] = 128  # larger than the window of the filter at the finest scale
    left = np.roll(right, 9, axis=1)
    views = [np.dstack([image] * 3) for image in (left, right)]
    inside = (slice(36, 60), slice(70, 110))
    errors = [
        np.abs(cross_scale.best_candidate(CrossScaleMatcher(32, regularization).volume(*views))[inside] - 9)
        for regularization in (0.0, 1.0)
    ]
    assert errors[1].mean() < 0.7 * errors[0].mean()


def test_small_images_and_wide_ranges_are_matched() -> None:
    pair = np.random.default_rng(5).integers(0, 256, (2, 5, 7, 3), dtype=np.uint8)
    for array in CrossScaleMatcher(64)(*pair):
        assert array.shape == (5, 7)
        assert np.isfinite(array).all()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1 pixel; got 0"):
        CrossScaleMatcher(0)
    with pytest.raises(InputError, match="regularization must be 0 or a positive number; got -1"):
        CrossScaleMatcher(16, -1)


def test_a_matcher_opens_it_by_name() -> None:
    right = np.random.default_rng(6).integers(0, 256, (48, 96, 3), dtype=np.uint8)
    matcher = StereoMatcher("cross-scale", max_disparity=24)
    result = matcher(np.roll(right, 6, axis=1), right)
    assert (result.model, matcher.spec.max_disparity) == ("cross-scale", 24)
    assert "cross-scale aggregation" in result.engine
    assert np.median(result.disparity[:, 12:]) == pytest.approx(6, abs=0.1)
    with pytest.raises(UnsupportedError, match="cross-scale runs in OpenCV"):
        StereoMatcher("cross-scale", engine="torch")
