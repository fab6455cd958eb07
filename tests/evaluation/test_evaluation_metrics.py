"""Every measure equals its definition written as a loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aanet.data.datasets import DATASETS
from aanet.evaluation.metrics import METRICS, THRESHOLDS, ErrorSums, average, error_sums, fill_holes
from aanet.evaluation.protocols import describe, protocol_of

# Errors that lie well off every threshold, so that a float32 map and the loop agree on which side they are.
disparities = st.integers(0, 800).map(lambda quarter: quarter / 4 + 0.0625)


def maps(shape: tuple[int, int] = (5, 7)) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float32, shape, elements=disparities)


def masks(shape: tuple[int, int] = (5, 7)) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.bool_, shape)


@settings(max_examples=40, deadline=None)
@given(predicted=maps(), truth=maps(), scored=masks(), given_mask=masks())
def test_error_sums_equal_a_loop_over_pixels(predicted, truth, scored, given_mask) -> None:
    pixels = present = outliers = 0
    absolute = 0.0
    above = [0] * len(THRESHOLDS)
    for y in range(truth.shape[0]):
        for x in range(truth.shape[1]):
            if not scored[y, x]:
                continue
            error = abs(float(predicted[y, x]) - float(truth[y, x]))
            pixels += 1
            present += bool(given_mask[y, x])
            absolute += error
            outliers += error > 3 and error / float(truth[y, x]) > 0.05
            for place, threshold in enumerate(THRESHOLDS):
                above[place] += error > threshold
    sums = error_sums(predicted, truth, scored, given_mask)
    assert (sums.pixels, sums.predicted, sums.outliers) == (pixels, present, outliers)
    assert sums.above == tuple(above)
    assert sums.absolute == pytest.approx(absolute)


def one_pixel(error: float, truth: float) -> ErrorSums:
    known = np.ones((1, 1), bool)
    return error_sums(np.array([[truth + error]], np.float32), np.array([[truth]], np.float32), known, known)


@pytest.mark.parametrize(
    ("error", "truth", "d1"),
    [(3.0, 10, 0), (3.5, 10, 100), (-3.5, 10, 100), (3.5, 100, 0), (4.5, 100, 0), (5.5, 100, 100)],
)
def test_d1_needs_more_than_three_pixels_and_more_than_five_percent(
    error: float, truth: float, d1: float
) -> None:
    assert one_pixel(error, truth).d1 == d1


def test_bad_is_strictly_above_the_threshold() -> None:
    assert one_pixel(1.0, 10).bad(1.0) == 0
    assert one_pixel(1.5, 10).bad(1.0) == 100


def test_averages_over_images_and_over_pixels_differ_as_they_should() -> None:
    small = ErrorSums(pixels=1, predicted=1, absolute=4.0, above=(1,) * 6, outliers=1)
    large = ErrorSums(pixels=3, predicted=0, absolute=0.0, above=(0,) * 6, outliers=0)
    nothing = ErrorSums()
    images = [small, nothing, large]
    assert average(images, lambda s: s.epe, "images") == 2.0
    assert average(images, lambda s: s.epe, "pixels") == 1.0
    assert average(images, lambda s: s.d1, "images") == 50.0
    assert average(images, lambda s: s.density, "pixels") == 25.0
    assert math.isnan(average([nothing], lambda s: s.epe, "images"))


def naive_fill(disparity: np.ndarray) -> np.ndarray:
    height, width = disparity.shape
    filled = disparity.copy()
    for y in range(height):
        for x in range(width):
            if _known(disparity[y, x]):
                continue
            left = next((disparity[y, i] for i in range(x - 1, -1, -1) if _known(disparity[y, i])), math.inf)
            right = next((disparity[y, i] for i in range(x + 1, width) if _known(disparity[y, i])), math.inf)
            filled[y, x] = min(left, right)
    rows = [y for y in range(height) if any(_known(value) for value in disparity[y])]
    for y in range(height):
        if rows and y not in rows:
            filled[y] = filled[max((row for row in rows if row < y), default=rows[0])]
    return filled if rows else np.zeros_like(disparity)


def _known(value: float) -> bool:
    return bool(np.isfinite(value)) and value >= 0


@settings(max_examples=60, deadline=None)
@given(disparity=arrays(np.float32, (6, 5), elements=st.sampled_from([np.nan, np.inf, -1.0, 0.0, 2.0, 7.5])))
def test_filling_holes_equals_a_loop(disparity: np.ndarray) -> None:
    filled, given_mask = fill_holes(disparity)
    np.testing.assert_array_equal(filled, naive_fill(disparity))
    np.testing.assert_array_equal(given_mask, [[_known(value) for value in row] for row in disparity])


def test_a_dense_map_stays_as_it_is() -> None:
    dense = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert fill_holes(dense)[0] is dense


def test_every_protocol_names_known_metrics() -> None:
    for dataset in DATASETS.values():
        protocol = dataset.CARD.protocol
        assert protocol.split in dataset.CARD.splits
        assert set(protocol.metrics) <= set(METRICS)
        assert describe(protocol)[1][0] == "range"


def test_protocols_average_as_the_benchmarks_do() -> None:
    assert protocol_of("kitti2015").average == "pixels"
    assert protocol_of("kitti2012").average == "images"
    assert protocol_of("sceneflow").max_disparity == 192
    assert METRICS["out_noc"].region == "visible"
    assert METRICS["out_noc"].statistic(one_pixel(3.5, 200)) == 100  # no 5 % rule in 2012
    assert METRICS["d1_bg"].region == "background"
