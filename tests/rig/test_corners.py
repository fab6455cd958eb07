from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.rig.corners import Gray, find_corners, find_other_board
from aanet.rig.pattern import Pattern
from helpers.rendered_rig import photographs, pinhole_rig, turned

CHESSBOARD = Pattern.parse("chessboard:9x6", 25)
CHARUCO = Pattern.parse("charuco:7x5", 40)
RIG = pinhole_rig()
POSE = (turned(25, -20, 8), np.array([0.01, 0.02, 0.5]))


def photograph(
    pattern: Pattern, blur: float = 0.6, center: tuple[float, float, float] = (0.01, 0.02, 0.5)
) -> Gray:
    return photographs(RIG, pattern, [(POSE[0], np.array(center))], blur=blur)[0][0]


@pytest.mark.parametrize(("pattern", "tolerance"), [(CHESSBOARD, 0.15), (CHARUCO, 0.3)], ids=str)
def test_corners_are_found_to_a_fraction_of_a_pixel(pattern: Pattern, tolerance: float) -> None:
    found = find_corners(photograph(pattern), pattern)
    assert found is not None
    true = RIG.left.project((pattern.points - pattern.points.mean(axis=0)) @ POSE[0].T + POSE[1])[
        found.numbers
    ]
    if np.linalg.norm(found.points[0] - true[0]) > 20:  # numbered from the other end
        true = true[::-1]
    assert len(found.points) > 20
    assert np.abs(found.points - true).max() < tolerance
    assert not found.is_blurred


@pytest.mark.parametrize(("pattern", "blur"), [(CHESSBOARD, 12), (CHARUCO, 3.5)], ids=str)
def test_a_blurred_board_is_found_and_called_blurred(pattern: Pattern, blur: float) -> None:
    large = cv2.resize(photograph(pattern), None, fx=3, fy=3)
    found = find_corners(cv2.GaussianBlur(large, (0, 0), blur).astype(np.uint8), pattern)
    assert found is not None
    assert found.is_blurred


def test_the_width_of_an_edge_is_that_of_its_blur() -> None:
    widths = [find_corners(photograph(CHESSBOARD, blur), CHESSBOARD) for blur in (0.6, 1.6)]
    sharp, soft = (each.edge_px for each in widths if each is not None)
    assert sharp < 2.5
    # The steepest slope of an edge blurred by a Gaussian has a ramp of sqrt(2 pi) sigma.
    assert soft == pytest.approx(np.sqrt(2 * np.pi) * 1.7, rel=0.15)


def test_a_charuco_board_may_be_partly_out_of_view_and_a_chessboard_may_not() -> None:
    aside = (0.2, 0.02, 0.5)
    part = find_corners(photograph(CHARUCO, center=aside), CHARUCO)
    assert part is not None
    assert 8 <= len(part.numbers) < 24
    assert find_corners(photograph(CHESSBOARD, center=aside), CHESSBOARD) is None


def test_a_large_photograph_is_searched_at_a_smaller_size_and_refined_at_its_own() -> None:
    small = photograph(CHESSBOARD)
    large = cv2.resize(small, None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC).astype(np.uint8)
    first, second = (find_corners(image, CHESSBOARD) for image in (small, large))
    assert first is not None
    assert second is not None
    assert np.abs((second.points + 0.5) / 3 - 0.5 - first.points).max() < 0.1


def test_another_board_is_recognized() -> None:
    assert find_other_board(photograph(CHESSBOARD), Pattern.parse("chessboard:8x5", 25)) in (
        "chessboard:9x6",
        "chessboard:6x9",
    )
    markers = find_other_board(photograph(CHARUCO), CHESSBOARD)
    assert markers is not None
    assert "markers of 4x4" in markers
    assert find_other_board(np.full((200, 300), 128, np.uint8), CHESSBOARD) is None
