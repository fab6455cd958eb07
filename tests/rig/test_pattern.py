from __future__ import annotations

import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.rig.pattern import Pattern


def test_a_chessboard_counts_inner_corners_and_charuco_counts_squares() -> None:
    chessboard, charuco = Pattern.parse("chessboard:9x6", 25), Pattern.parse("charuco:5x7", 40)
    assert (chessboard.corners, chessboard.squares) == ((9, 6), (10, 7))
    assert (charuco.corners, charuco.squares) == ((4, 6), (5, 7))
    assert (charuco.marker_mm, charuco.dictionary) == (30, "4x4_50")
    assert str(charuco) == "charuco:5x7"


@pytest.mark.parametrize("text", ["chessboard:9x6", "charuco:10x7"])
def test_the_corners_are_numbered_row_by_row_in_meters(text: str) -> None:
    points = Pattern.parse(text, 25).points
    assert points.shape == (54, 3)
    np.testing.assert_allclose(points[[0, 1, 9]], [[0, 0, 0], [0.025, 0, 0], [0, 0.025, 0]])


def test_the_numbers_of_charuco_corners_are_those_of_opencv() -> None:
    pattern = Pattern.parse("charuco:5x7", 40)
    theirs = np.asarray(pattern.aruco_board.getChessboardCorners()).reshape(-1, 3) / 1000
    np.testing.assert_allclose(pattern.points, theirs - theirs[0], atol=1e-6)


@pytest.mark.parametrize(
    ("text", "square", "marker", "dictionary", "sentence"),
    [
        ("chessboard", 25, None, None, "chessboard:9x6 or charuco:5x7; got 'chessboard'"),
        ("circles:9x6", 25, None, None, "chessboard or a charuco board; got 'circles'"),
        ("chessboard:2x6", 25, None, None, "3 to 100 columns and rows; got 2x6"),
        ("chessboard:9x6", 0, None, None, "must be positive, in millimeters; got 0"),
        ("chessboard:9x6", float("nan"), None, None, "must be positive"),
        ("chessboard:9x6", 25, 20, None, "A chessboard has no markers"),
        ("charuco:5x7", 40, 40, None, "smaller than its square of 40 mm; got 40 mm"),
        ("charuco:5x7", 40, None, "4x4_51", "no marker dictionary '4x4_51' .did you mean"),
        ("charuco:20x9", 10, None, None, "needs 90 markers; the dictionary 4x4_50 has 50"),
    ],
)
def test_an_impossible_board_is_refused(
    text: str, square: float, marker: float | None, dictionary: str | None, sentence: str
) -> None:
    with pytest.raises(AanetError, match=sentence):
        Pattern.parse(text, square, marker, dictionary)
