from __future__ import annotations

import numpy as np
import pytest

from aanet import viz
from aanet.errors import AanetError

NAN = np.float32(np.nan)


def test_near_is_red_far_is_blue_and_unknown_is_neither() -> None:
    disparity = np.array([[10, 20, 30, NAN]], np.float32)
    colored = viz.colorize_disparity(disparity, 10, 30)
    far, middle, near, unknown = colored[0].astype(int)
    assert near[0] > near[2]
    assert far[2] > far[0]
    assert middle[1] > 200
    assert tuple(unknown) == viz.UNKNOWN
    depth = viz.colorize_depth(1 / disparity, 1 / 30, 1 / 10)
    np.testing.assert_array_equal(depth[0, [0, 2, 3]], colored[0, [0, 2, 3]])


def test_values_beyond_the_range_take_the_color_of_its_end() -> None:
    colored = viz.colorize_disparity(np.array([[-5, 0, 10, 99]], np.float32), 0, 10)
    np.testing.assert_array_equal(colored[0, 0], colored[0, 1])
    np.testing.assert_array_equal(colored[0, 2], colored[0, 3])


def test_a_few_wild_values_do_not_stretch_the_range() -> None:
    values = np.linspace(10, 20, 1000, dtype=np.float32).reshape(20, 50)
    values[0, 0], values[0, 1], values[0, 2] = 1e6, np.inf, NAN
    low, high = viz.value_range(values)
    assert 9.9 < low < 10.5
    assert 19.5 < high < 21


@pytest.mark.parametrize("value", [NAN, 7.0, 0.0])
def test_maps_without_any_range_still_have_a_picture(value: float) -> None:
    assert viz.colorize_disparity(np.full((4, 5), value, np.float32)).shape == (4, 5, 3)
    assert viz.colorize_depth(np.full((4, 5), value, np.float32)).shape == (4, 5, 3)


def test_an_impossible_range_is_refused() -> None:
    with pytest.raises(AanetError, match="vmin < vmax"):
        viz.colorize_disparity(np.ones((2, 2), np.float32), 5, 5)
    with pytest.raises(AanetError, match="above 0"):
        viz.colorize_depth(np.ones((2, 2), np.float32), 0, 5)


def test_error_colors_agree_with_a_plain_reading_of_the_benchmark() -> None:
    rng = np.random.default_rng(3)
    truth = rng.uniform(1, 150, (12, 13)).astype(np.float32)
    predicted = truth + rng.choice([0.1, 0.5, 2.9, 3.1, 10, 60], truth.shape).astype(np.float32)
    valid = rng.random(truth.shape) < 0.7
    picture = viz.colorize_error(predicted, truth, valid)
    upper = [0.1875, 0.375, 0.75, 1.5, 3, 6, 12, 24, 48, np.inf]  # pixels, where 3 px is the threshold
    for y, x in np.ndindex(truth.shape):
        error = abs(float(predicted[y, x]) - float(truth[y, x]))
        scaled = 3 * min(error / 3, error / float(truth[y, x]) / 0.05)
        expected = next(c for end, c in zip(upper, viz.KITTI_ERROR_COLORS, strict=True) if scaled < end)
        assert tuple(picture[y, x]) == (expected if valid[y, x] else (0, 0, 0))


def test_the_outlier_rule_is_where_blue_turns_to_yellow() -> None:
    truth = np.array([[20.0, 20.0, 100.0, 100.0]], np.float32)
    predicted = truth + np.array([[2.9, 3.1, 4.9, 5.1]], np.float32)
    red, _, blue = np.moveaxis(viz.colorize_error(predicted, truth, truth > 0).astype(int), 2, 0)
    assert ((red > blue) == [[False, True, False, True]]).all()


def test_larger_dots_fill_unknown_neighbors_only() -> None:
    truth = np.full((5, 5), 10, np.float32)
    valid = np.zeros((5, 5), bool)
    valid[2, 1] = valid[2, 2] = True
    predicted = truth.copy()
    predicted[2, 2] += 50
    plain, dots = (viz.colorize_error(predicted, truth, valid, dot=dot) for dot in (1, 3))
    np.testing.assert_array_equal(plain[valid], dots[valid])
    assert tuple(dots[1, 2]) == viz.KITTI_ERROR_COLORS[9]
    assert tuple(dots[1, 0]) == viz.KITTI_ERROR_COLORS[0]
    assert tuple(dots[1, 4]) == (0, 0, 0)
