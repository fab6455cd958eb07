"""Regions follow their definitions; the sparsification area ranks confidences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aanet.data.sample import StereoSample
from aanet.evaluation.regions import near_edges, region_masks, textureless
from aanet.evaluation.sparsification import STEPS, sparsification


def naive_edges(disparity: np.ndarray, valid: np.ndarray) -> np.ndarray:
    height, width = disparity.shape
    jumps = np.zeros((height, width), bool)
    for y in range(height):
        for x in range(width):
            for v, u in ((y, x + 1), (y, x - 1), (y + 1, x), (y - 1, x)):
                inside = 0 <= v < height and 0 <= u < width
                if inside and valid[y, x] and valid[v, u] and abs(disparity[y, x] - disparity[v, u]) > 2:
                    jumps[y, x] = True
    near = np.zeros((height, width), bool)
    for y in range(height):
        for x in range(width):
            near[y, x] = jumps[max(0, y - 4) : y + 5, max(0, x - 4) : x + 5].any()
    return near


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_near_edges_equals_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    disparity = np.where(rng.random((14, 17)) < 0.02, 9, 5).astype(np.float32)
    valid = rng.random((14, 17)) < 0.8
    np.testing.assert_array_equal(near_edges(disparity, valid), naive_edges(disparity, valid))


def test_textureless_equals_a_loop_and_finds_the_flat_half() -> None:
    image = np.full((12, 20, 3), 90, np.uint8)
    image[:, 10:] = np.random.default_rng(0).integers(0, 256, (12, 10, 1))
    gray = image[:, :, 0].astype(float)
    expected = np.zeros((12, 20), bool)
    for y in range(1, 11):
        for x in range(1, 18):
            window = [
                (gray[v, u + 1] - gray[v, u]) ** 2 for v in range(y - 1, y + 2) for u in range(x - 1, x + 2)
            ]
            expected[y, x] = np.mean(window) < 4
    found = textureless(image)
    np.testing.assert_array_equal(found[1:11, 1:18], expected[1:11, 1:18])
    assert found[:, :8].all()
    assert not found[:, 12:17].all()


def test_regions_divide_the_scored_pixels() -> None:
    rng = np.random.default_rng(1)
    flags = rng.random((3, 9, 11)) < 0.5
    image = rng.integers(0, 256, (9, 11, 3), dtype=np.uint8)
    sample = StereoSample(
        "x", image, image, np.ones((9, 11), np.float32), np.ones((9, 11), bool), flags[0], flags[1]
    )
    masks = region_masks(sample, flags[2])
    for one, other in (("visible", "occluded"), ("foreground", "background")):
        assert not (masks[one] & masks[other]).any()
        np.testing.assert_array_equal(masks[one] | masks[other], flags[2])
    sample.visible = sample.foreground = None
    assert set(region_masks(sample, flags[2])) == {"all", "edges", "textureless"}


def test_a_confidence_that_ranks_like_the_error_has_no_area() -> None:
    error = np.random.default_rng(2).exponential(size=(20, 30))
    assert sparsification(error, -error).ause == pytest.approx(0, abs=1e-12)


def test_random_and_inverted_confidences_are_worse() -> None:
    rng = np.random.default_rng(3)
    error = rng.exponential(size=5000)
    good = sparsification(error, -error + rng.normal(size=5000)).ause
    random = sparsification(error, rng.random(5000)).ause
    inverted = sparsification(error, error).ause
    assert 0 < good < random < inverted


def test_sparsification_curves_equal_a_loop() -> None:
    rng = np.random.default_rng(4)
    error, confidence = rng.random(137), rng.random(137)
    curves = sparsification(error, confidence)
    order = sorted(range(137), key=lambda i: confidence[i])
    for step in (0, 1, 37, 99):
        kept = order[int(step / STEPS * 137) :]
        assert curves.by_confidence[step] == pytest.approx(error[kept].mean() / error.mean())
        best = np.sort(error)[: len(kept)]
        assert curves.oracle[step] == pytest.approx(best.mean() / error.mean())
    gaps = [curves.by_confidence[i] - curves.oracle[i] for i in range(STEPS)]
    area = sum((gaps[i] + gaps[i + 1]) / 2 / STEPS for i in range(STEPS - 1))
    assert curves.ause == pytest.approx(area)


def test_pixels_without_a_confidence_go_first() -> None:
    error = np.array([5.0, 1.0, 1.0, 1.0])
    unknown = sparsification(error, np.array([np.nan, 0.1, 0.2, 0.3]))
    assert unknown.ause == sparsification(error, np.array([-1, 0.1, 0.2, 0.3])).ause == 0


def test_a_map_without_error_has_no_area() -> None:
    assert sparsification(np.zeros(10), np.arange(10.0)).ause == 0
