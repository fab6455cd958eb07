"""Holes are filled from the ends they have in their row, and what is known stays."""

from __future__ import annotations

import numpy as np

from aanet.inference.holes import ends_of_holes, fill_smoothly

NAN = np.nan


def test_ends_are_the_nearest_known_pixels_of_the_row() -> None:
    rng = np.random.default_rng(3)
    disparity = rng.uniform(1, 50, (9, 14)).astype(np.float32)
    known = rng.random(disparity.shape) < 0.4
    known[4] = False
    ends = ends_of_holes(disparity, known)
    for y, x in np.ndindex(disparity.shape):
        before = max((other for other in range(x + 1) if known[y, other]), default=-1)
        after = min((other for other in range(x, 14) if known[y, other]), default=14)
        assert (ends.before[y, x], ends.after[y, x]) == (before, after)
        assert ends.left[y, x] == (disparity[y, before] if before >= 0 else np.inf)
        assert ends.right[y, x] == (disparity[y, after] if after < 14 else np.inf)


def test_holes_take_the_background_or_continue_a_surface() -> None:
    edge = [5.0, 5.0, NAN, NAN, 40.0, 40.0]
    slope = [10.0, 11.0, NAN, NAN, 14.0, 15.0]
    border = [NAN, NAN, 30.0, 30.0, 9.0, NAN]
    rows = [np.repeat(np.array([row], np.float32), 12, axis=0) for row in (edge, slope, border)]
    assert fill_smoothly(rows[0])[6].tolist() == [5, 5, 5, 5, 40, 40]
    np.testing.assert_allclose(fill_smoothly(rows[1])[6], [10, 11, 12, 13, 14, 15])
    assert fill_smoothly(rows[2])[6].tolist() == [30, 30, 30, 30, 9, 9]


def test_rows_without_a_match_copy_their_neighbor_and_known_pixels_stay() -> None:
    rng = np.random.default_rng(0)
    disparity = rng.uniform(1, 50, (20, 15)).astype(np.float32)
    disparity[rng.random(disparity.shape) < 0.5] = NAN
    disparity[8:13] = NAN
    filled = fill_smoothly(disparity)
    known = np.isfinite(disparity)
    np.testing.assert_array_equal(filled[known], disparity[known])
    assert np.isfinite(filled).all()
    assert (fill_smoothly(np.full((3, 4), NAN, np.float32)) == 0).all()


def test_an_empty_row_takes_the_nearest_row_above_or_below() -> None:
    rows = np.float32([5, NAN, NAN, NAN, NAN, NAN, 9, 9])  # row 3 is as near to both
    filled = fill_smoothly(np.repeat(rows[:, None], 20, axis=1))
    assert filled[[0, 1, 5, 6, 7], 10].tolist() == [5, 5, 9, 9, 9]
    assert set(filled[:, 10].tolist()) == {5, 9}
