"""What weights ask of a matcher: edges are cut, and surfaces go on past the view of the right camera."""

from __future__ import annotations

import re

import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.inference.hints import InferenceHints
from aanet.inference.options import Postprocess
from aanet.inference.postprocess import STEEPEST, fill_left_border, sharpen_edges
from helpers.fake_engine import FakeEngine

# A plane 8 pixels near, and a guess of 20 where the right camera sees nothing.
GUESSED = np.tile(np.float32([20] * 8 + [8] * 40), (24, 1))


def test_the_hidden_border_takes_the_surface_beside_it() -> None:
    disparity = GUESSED.copy()
    disparity[10] = 60  # nothing in this row has a match: as the rows beside it
    result = fill_left_border(disparity)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.full_like(disparity, 8))


def test_a_near_surface_goes_on_to_the_border_under_a_mottled_guess() -> None:
    # 30 pixels near up to column 60, of which the right camera sees columns 30 … 60; behind it 5 pixels.
    disparity = np.tile(np.float32([45, 75, 33] * 10 + [30] * 30 + [5] * 40), (16, 1))
    expected = np.tile(np.float32([30] * 60 + [5] * 40), (16, 1))
    np.testing.assert_array_equal(fill_left_border(disparity), expected)


def test_a_map_without_any_match_stays() -> None:
    disparity = np.full((5, 8), 20, np.float32)
    np.testing.assert_array_equal(fill_left_border(disparity), disparity)


def test_what_has_a_match_is_left_alone() -> None:
    rng = np.random.default_rng(1)
    disparity = rng.uniform(0, 30, (12, 40)).astype(np.float32)
    matched = np.arange(40) >= disparity
    np.testing.assert_array_equal(fill_left_border(disparity)[matched], disparity[matched])


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
        np.testing.assert_array_equal(sharpen_edges(disparity), cut_slowly(disparity))


def test_a_blurred_edge_becomes_a_step_and_a_slope_stays() -> None:
    blurred = np.tile(np.float32([10, 10, 10, 11, 17, 24, 30, 30, 30, 30]), (8, 1))
    assert set(np.unique(sharpen_edges(blurred))) <= {10, 11, 30}
    slope = np.tile(np.linspace(10, 28, 19, dtype=np.float32), (8, 1))  # one pixel of disparity a pixel
    np.testing.assert_array_equal(sharpen_edges(slope), slope)


@pytest.mark.parametrize(
    ("asked", "postprocess", "expected"),
    [
        (True, "auto", 8),
        (False, "auto", 20),
        (True, "none", 20),
        (False, "all", 8),
    ],
)
def test_a_matcher_extends_what_the_weights_or_the_user_ask_for(
    asked: bool, postprocess: Postprocess, expected: float
) -> None:
    matcher = FakeEngine(GUESSED, hints=InferenceHints(fill_border=asked)).matcher
    image = np.zeros((24, 48, 3), np.uint8)
    result = matcher(image, image, postprocess=postprocess, check=True, inspect=False)
    assert np.unique(result.disparity[:, :8]) == expected
    assert np.unique(result.disparity[:, 8:]) == 8
    # From right to left the hidden border is the right one.
    assert result.right_disparity is not None
    assert np.unique(result.right_disparity[:, -8:]) == expected
    assert np.unique(result.right_disparity[:, :-8]) == 8


@pytest.mark.parametrize(
    ("asked", "postprocess", "cut"), [(True, "auto", True), (False, "auto", False), (True, "none", False)]
)
def test_a_matcher_cuts_edges_where_the_weights_ask_for_it(
    asked: bool, postprocess: Postprocess, cut: bool
) -> None:
    predicted = np.tile(np.float32([8] * 20 + [9, 14, 19] + [20] * 25), (24, 1))
    matcher = FakeEngine(predicted, hints=InferenceHints(sharpen_edges=asked)).matcher
    image = np.zeros((24, 48, 3), np.uint8)
    disparity = matcher(image, image, postprocess=postprocess, inspect=False).disparity
    np.testing.assert_array_equal(disparity, sharpen_edges(predicted) if cut else predicted)
    assert cut == (14 not in disparity)


def test_an_unknown_postprocess_option_is_refused() -> None:
    matcher = FakeEngine().matcher
    image = np.zeros((24, 48, 3), np.uint8)
    with pytest.raises(AanetError, match="postprocess must be one of auto, none, all; got 'soft'"):
        matcher(image, image, postprocess="soft")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        ({"upscale_to": "wide"}, "FILE gives 'wide' for upscale_to; it must be a whole number."),
        ({"upscale_to": True}, "FILE gives True for upscale_to; it must be a whole number."),
        ({"sharpen_edges": "no"}, "FILE gives 'no' for sharpen_edges; it must be true or false."),
        ({"sharpen_edge": True}, "FILE has an unknown inference hint 'sharpen_edge'."),
    ],
)
def test_what_a_file_asks_for_must_make_sense(stored: dict[str, object], complaint: str) -> None:
    with pytest.raises(AanetError, match=re.escape(complaint)):
        InferenceHints.from_dict(stored, "FILE")
