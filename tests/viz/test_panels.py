from __future__ import annotations

import numpy as np
import pytest

from aanet import viz
from aanet.errors import AanetError
from aanet.viz.panels import ticks
from aanet.viz.text import text_width, wrap

TITLE = "error (yellow to red: more than 3 px and more than 5 %)"


def ink(picture: np.ndarray) -> int:
    """How much is drawn on the white paper."""
    return int((255 - picture.astype(int)).sum())


@pytest.mark.parametrize("unit", ["px", "m"])
def test_the_scale_bar_leaves_the_image_alone_and_puts_near_on_top(unit: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, (120, 200, 3), dtype=np.uint8)
    drawn = viz.with_scale_bar(image, 1.0, 50.0, unit)
    np.testing.assert_array_equal(drawn[:, :200], image)
    strip = drawn[:, 212].astype(int)
    assert strip[0, 0] > strip[0, 2]
    assert strip[-1, 2] > strip[-1, 0]
    assert (drawn[:, 230:] < 128).any(), "no label was drawn"


def test_tick_labels_are_round_and_within_the_scale() -> None:
    assert ticks(1.5, 60, "m", 6) == [2, 5, 10, 20, 50]
    assert ticks(8.3, 58.1, "px", 6) == [10, 20, 30, 40, 50]


def test_a_panel_keeps_pixels_and_fits_smaller_images() -> None:
    left = np.full((50, 80, 3), (200, 10, 10), np.uint8)
    small = np.full((25, 40, 3), (10, 10, 200), np.uint8)
    drawn = viz.panel([left, small, left], ["one", "two", "three"])
    for color, times in (((200, 10, 10), 2), ((10, 10, 200), 1)):
        assert (drawn == color).all(axis=2).sum() == times * 50 * 80
    with pytest.raises(AanetError, match="one title"):
        viz.panel([left], [])


def test_titles_of_small_images_are_wrapped_and_not_cut_off() -> None:
    small, large = (np.full((20, width, 3), 255, np.uint8) for width in (30, 500))
    wrapped, whole = viz.panel([small, small], [TITLE, "b"]), viz.panel([large, large], [TITLE, "b"])
    assert wrapped.shape[1] < whole.shape[1]
    assert wrapped.shape[0] > whole.shape[0]
    assert ink(wrapped) == pytest.approx(ink(whole), rel=0.05)
    assert ink(wrapped[:, -8:]) == 0


def test_a_column_is_as_wide_as_the_longest_word_of_its_titles() -> None:
    name = "a-name-of-weights-that-cannot-be-broken-between-words"
    drawn = viz.panel([np.zeros((20, 30, 3), np.uint8)], [name])
    assert drawn.shape[1] > text_width(name, 12)


def test_lines_are_broken_between_words_where_they_become_too_wide() -> None:
    lines = wrap(TITLE, 12, 160)
    assert " ".join(lines) == TITLE
    assert len(lines) > 1
    assert all(text_width(line, 12) <= 160 for line in lines)


@pytest.mark.parametrize(("vmin", "vmax", "height"), [(7.0, 7.007, 100), (1, 1000, 24)])
def test_labels_of_the_scale_fit_and_do_not_overlap(vmin: float, vmax: float, height: int) -> None:
    image = np.full((height, 100, 3), 255, np.uint8)
    drawn = viz.with_scale_bar(image, vmin, vmax, "px")
    assert ink(drawn[:, -1]) == 0
    rows = (drawn[:, 125:] < 128).any(axis=(1, 2))
    runs = np.diff(np.flatnonzero(np.diff(np.pad(rows, 1).astype(int))))[::2]  # heights of the labels
    assert runs.size
    assert runs.max() <= 12
