"""What weights ask of a matcher: edges are cut, and surfaces go on past the view of the right camera."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.engines.engine import NetworkFacts
from aanet.errors import AanetError
from aanet.handling import STEEPEST, Handling, cut_edges, extend_past_view
from aanet.matcher import Finish, StereoMatcher


def extended_slowly(disparity: np.ndarray) -> np.ndarray:
    """Pixel by pixel: walk to the right until the match is inside the right image."""
    result = disparity.copy()
    height, width = disparity.shape
    for y in range(height):
        for x in range(width):
            for other in range(x, width):
                if other - disparity[y, other] >= 0:
                    result[y, x] = disparity[y, other]
                    break
    return result


def test_each_row_goes_on_from_its_first_match() -> None:
    rng = np.random.default_rng(0)
    disparity = rng.uniform(0, 30, (3, 12, 40)).astype(np.float32)
    disparity[0, 5] = 50  # nothing in this row has a match
    result = extend_past_view(disparity)
    assert result.dtype == np.float32
    for one, expected in zip(result, disparity, strict=True):
        np.testing.assert_array_equal(one, extended_slowly(expected))
    np.testing.assert_array_equal(result[0, 5], disparity[0, 5])
    np.testing.assert_array_equal(extend_past_view(result), result)  # what was filled still has no match


def test_what_has_a_match_is_left_alone() -> None:
    rng = np.random.default_rng(1)
    disparity = rng.uniform(0, 30, (12, 40)).astype(np.float32)
    matched = np.arange(40) >= disparity
    np.testing.assert_array_equal(extend_past_view(disparity)[matched], disparity[matched])


def cut_slowly(disparity: np.ndarray) -> np.ndarray:
    """Pixel by pixel, over the part of each window that lies inside."""
    height, width = disparity.shape
    repeated = np.pad(disparity, 1, mode="edge")
    median = np.empty_like(disparity)
    for y, x in np.ndindex(height, width):
        median[y, x] = np.median(repeated[y : y + 3, x : x + 3])
    result = median.copy()
    for y, x in np.ndindex(height, width):
        window = median[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
        low, high, middle = window.min(), window.max(), median[y, x]
        if high - low > STEEPEST:
            result[y, x] = high if middle - low > high - middle else low
    return result


def test_edges_are_cut_as_pixel_by_pixel() -> None:
    rng = np.random.default_rng(2)
    smooth = np.cumsum(rng.normal(0, 1, (20, 30)), axis=1).astype(np.float32)
    steps = np.where(rng.random((20, 30)) < 0.5, 5, 25).astype(np.float32)
    for disparity in (smooth, steps + smooth):
        np.testing.assert_array_equal(cut_edges(disparity), cut_slowly(disparity))


def test_a_blurred_edge_becomes_a_step_and_a_slope_stays() -> None:
    blurred = np.tile(np.float32([10, 10, 10, 11, 17, 24, 30, 30, 30, 30]), (8, 1))
    assert set(np.unique(cut_edges(blurred))) <= {10, 11, 30}
    slope = np.tile(np.linspace(10, 28, 19, dtype=np.float32), (8, 1))  # one pixel of disparity a pixel
    np.testing.assert_array_equal(cut_edges(slope), slope)


# A plane 8 pixels near, and a guess of 20 where the right camera sees nothing.
GUESSED = np.tile(np.float32([20] * 8 + [8] * 40), (24, 1))


class FakeEngine:
    """Predicts the same for every pair."""

    name = description = "fake"

    def __init__(self, handling: Handling, disparity: np.ndarray = GUESSED) -> None:
        self.facts = NetworkFacts("aanet", 48, handling=handling)
        self.disparity = disparity[None]  # [B, H, W]

    def __call__(self, _left: np.ndarray, _right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.disparity, np.ones_like(self.disparity)

    def available_memory(self) -> int:
        return 10**12


@pytest.mark.parametrize(
    ("asked", "finish", "expected"),
    [
        (True, "auto", 8),
        (False, "auto", 20),
        (True, "none", 20),
        (False, "all", 8),
    ],
)
def test_a_matcher_extends_what_the_weights_or_the_user_ask_for(
    asked: bool, finish: Finish, expected: float
) -> None:
    matcher = StereoMatcher.with_engine(FakeEngine(Handling(extend_border=asked)))
    image = np.zeros((24, 48, 3), np.uint8)
    result = matcher(image, image, finish=finish, check=True, inspect=False)
    assert np.unique(result.disparity[:, :8]) == expected
    assert np.unique(result.disparity[:, 8:]) == 8
    # From right to left the hidden border is the right one.
    assert result.right_disparity is not None
    assert np.unique(result.right_disparity[:, -8:]) == expected
    assert np.unique(result.right_disparity[:, :-8]) == 8


@pytest.mark.parametrize(
    ("asked", "finish", "cut"), [(True, "auto", True), (False, "auto", False), (True, "none", False)]
)
def test_a_matcher_cuts_edges_where_the_weights_ask_for_it(asked: bool, finish: Finish, cut: bool) -> None:
    predicted = np.tile(np.float32([8] * 20 + [9, 14, 19] + [20] * 25), (24, 1))
    matcher = StereoMatcher.with_engine(FakeEngine(Handling(cut_edges=asked), predicted))
    image = np.zeros((24, 48, 3), np.uint8)
    disparity = matcher(image, image, finish=finish, inspect=False).disparity
    np.testing.assert_array_equal(disparity, cut_edges(predicted) if cut else predicted)
    assert cut == (14 not in disparity)


def test_a_finish_that_means_nothing_is_refused() -> None:
    matcher = StereoMatcher.with_engine(FakeEngine(Handling()))
    image = np.zeros((24, 48, 3), np.uint8)
    with pytest.raises(AanetError, match="The finish must be one of auto, none, all; got 'soft'"):
        matcher(image, image, finish="soft")  # type: ignore[arg-type]
