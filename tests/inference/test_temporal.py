"""The filter along time halves the flicker, and does not smear what moves."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.engines.semi_global import SemiGlobalMatcher
from aanet.errors import InputError
from aanet.inference.temporal import TemporalFilter
from helpers.moving_square import edge_error, flicker, moving_square


def filtered(maps: list[np.ndarray], weight: float = 0.4) -> list[np.ndarray]:
    average = TemporalFilter(weight)
    return [average(disparity) for disparity in maps]


def like_a_network(disparity: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Blurred edges, and noise of 0.3 pixels that neighbors share."""
    noise = cv2.GaussianBlur(rng.standard_normal(disparity.shape), (0, 0), 2)
    return (cv2.GaussianBlur(disparity, (0, 0), 1) + 0.3 * noise / noise.std()).astype(np.float32)


def like_an_ideal_matcher(disparity: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sharp edges, and independent noise of 0.3 pixels."""
    return (disparity + 0.3 * rng.standard_normal(disparity.shape)).astype(np.float32)


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("front", [11, 20])
@pytest.mark.parametrize("simulate", [like_a_network, like_an_ideal_matcher])
def test_simulated_flicker_is_halved_and_moving_edges_stay(simulate, front, step):
    moments = moving_square(12, step, front=front)
    rng = np.random.default_rng(0)
    maps = [simulate(moment.disparity, rng) for moment in moments]
    still = moments[0].still
    assert flicker(filtered(maps), still) < 0.5 * flicker(maps, still)
    assert edge_error(filtered(maps), moments) < 1.05 * edge_error(maps, moments)


@pytest.mark.parametrize(("front", "step"), [(11, 2), (20, 2)])
def test_the_flicker_of_sgbm_is_halved_and_moving_edges_stay(front, step):
    moments = moving_square(12, step, noise=8, front=front)
    matcher = SemiGlobalMatcher(32)
    maps = [matcher(moment.left, moment.right)[0] for moment in moments]
    still = moments[0].still
    assert flicker(filtered(maps), still) < 0.5 * flicker(maps, still)
    assert edge_error(filtered(maps), moments) < 1.05 * edge_error(maps, moments)


def test_small_changes_are_averaged_and_large_ones_replaced():
    average = TemporalFilter(0.4)
    first = np.full((9, 12), 10, np.float32)
    given = first.copy()
    result = average(given)
    assert np.array_equal(result, first)
    result[:] = given[:] = 0  # is of no consequence
    np.testing.assert_allclose(average(first + np.float32(0.4)), 10.16, rtol=1e-6)
    assert np.array_equal(average(first + 5), first + 5)  # another scene
    assert np.array_equal(average(first[:5]), first[:5])  # another size


def test_unknown_pixels_stay_unknown_and_have_no_history():
    average = TemporalFilter(0.4)
    known = np.full((9, 12), 10, np.float32)
    unknown = known.copy()
    unknown[3, 4] = np.nan
    average(known)
    np.testing.assert_array_equal(average(unknown), unknown)
    np.testing.assert_array_equal(average(known), known)


@pytest.mark.parametrize("weight", [0, -0.1, 1.01, float("nan"), True, "0.4"])
def test_a_weight_out_of_range_is_refused(weight):
    with pytest.raises(InputError, match="above 0 and at most 1"):
        TemporalFilter(weight)
