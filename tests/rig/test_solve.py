"""Known cameras are recovered from the corners that they see, and what cannot be trusted is called so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from aanet.rig.assessment import Assessment, assess
from aanet.rig.corners import Corners
from aanet.rig.pattern import Pattern
from aanet.rig.solve import Solution, solve
from aanet.rig.views import View, Views
from helpers.rendered_rig import Rig, board_poses, fisheye_rig, pinhole_rig, seen_views, turned

CHESSBOARD = Pattern.parse("chessboard:9x6", 25)
CHARUCO = Pattern.parse("charuco:7x5", 40)
POSES = board_poses(18, 0, (0.45, 0.7), 0.28)


def close_to(rig: Rig, solution: Solution, relative: float = 0.005) -> bool:
    focal = [
        abs(lens.matrix[axis, axis] / camera.focal - 1) < relative
        for lens, camera in zip(solution.lenses, (rig.left, rig.right), strict=True)
        for axis in range(2)
    ]
    baseline = float(np.linalg.norm(solution.translation))
    return all(focal) and abs(baseline / rig.baseline - 1) < relative


def moved(view: View, side: int, by: tuple[float, float]) -> None:
    corners = view.corners[side]
    assert corners is not None
    view.corners[side] = dataclasses.replace(corners, points=corners.points + by)


def judged(views: Views) -> tuple[Solution, Assessment]:
    solution = solve(views, "pinhole")
    return solution, assess(views, solution)


def test_pinhole_cameras_are_recovered() -> None:
    rig = pinhole_rig()
    views = seen_views(rig, CHESSBOARD, POSES)
    solution, assessment = judged(views)
    assert close_to(rig, solution)
    assert solution.epipolar_rms < 0.3
    assert solution.reprojection_rms == pytest.approx((0.07, 0.07), abs=0.01)  # the noise, in x and y
    np.testing.assert_allclose(solution.rotation, rig.rotation, atol=3e-3)
    np.testing.assert_allclose(
        solution.lenses[0].distortion.ravel()[:2], rig.left.coefficients[:2], atol=0.01
    )
    assert solution.lenses[0].field_of_view(views.size)[0] == pytest.approx(58.5, abs=0.5)
    assert assessment.problems == []
    assert assessment.tilt_deg > 30


@pytest.mark.parametrize("pattern", [CHESSBOARD, CHARUCO], ids=str)
def test_fisheye_cameras_are_recovered_also_from_parts_of_boards(pattern: Pattern) -> None:
    rig = fisheye_rig()
    views = seen_views(rig, pattern, board_poses(18, 0, (0.2, 0.32), 0.8))
    if pattern is CHARUCO:
        for hidden, view in enumerate(views.views):
            corners = view.corners[0]
            if corners is not None:
                view.corners[0] = dataclasses.replace(
                    corners, points=corners.points[hidden % 5 :], numbers=corners.numbers[hidden % 5 :]
                )
    solution = solve(views, "fisheye")
    assert close_to(rig, solution)
    assert solution.epipolar_rms < 0.3
    projection = solution.rectification.right_projection
    widest = 2 * np.degrees(np.arctan(views.size[0] / 2 / projection[0, 0]))
    assert widest <= 120.1  # a plane cannot show all of a fisheye image
    assert projection[0, 3] / projection[0, 0] == pytest.approx(-rig.baseline, rel=0.005)
    if pattern is CHESSBOARD:  # the other corners do not reach the border
        horizontal, _ = solution.lenses[0].field_of_view(views.size)
        assert horizontal == pytest.approx(155, abs=4)


def test_views_of_one_camera_help_that_camera() -> None:
    rig = pinhole_rig()
    views = seen_views(rig, CHESSBOARD, POSES)
    for view in views.views[10:]:
        view.corners[1] = None
    solution, _ = judged(views)
    assert len(solution.pairs) <= 10
    assert len(solution.single[0]) > len(solution.single[1])
    assert {view.name for view in views.views[10:] if view.corners[0]} <= solution.reprojection[0].keys()


def test_outliers_are_left_out_by_name() -> None:
    rig = pinhole_rig()
    views = seen_views(rig, CHESSBOARD, POSES)
    usable = [view for view in views.views if view.in_both]
    bent, late = usable[2], usable[7]
    corners = bent.corners[0]
    assert corners is not None
    ripple = 3 * np.sin(corners.points / 15)
    bent.corners[0] = dataclasses.replace(corners, points=corners.points + ripple)
    moved(late, 1, (6, 2))  # the board moved on before the second exposure
    solution, assessment = judged(views)
    assert {view.name for view in usable} - {view.name for view in solution.pairs} == {bent.name, late.name}
    assert "outlier in the left image" in (bent.reason or "")
    assert "two images do not fit together" in (late.reason or "")
    assert close_to(rig, solution)
    assert assessment.problems == []


def test_k3_is_fitted_only_where_the_lens_needs_it() -> None:
    plain = pinhole_rig()
    strong = dataclasses.replace(plain.left, coefficients=(-0.35, 0.25, 0.0, 0.0, -0.4))
    views = seen_views(dataclasses.replace(plain, left=strong), CHESSBOARD, POSES, noise=0.02)
    left, right = (lens.distortion.ravel()[4] for lens in solve(views, "pinhole").lenses)
    assert left < -0.1
    assert right == 0


def test_swapped_sides_are_bad() -> None:
    views = seen_views(pinhole_rig(), CHESSBOARD, POSES)
    for view in views.views:
        view.corners.reverse()
    assert ["sides are swapped" in problem for problem in judged(views)[1].problems] == [True]


def test_one_camera_above_the_other_is_bad() -> None:
    rig = dataclasses.replace(pinhole_rig(), translation=np.array([0.001, -0.06, 0.0]))
    assert "above the other" in judged(seen_views(rig, CHESSBOARD, POSES))[1].problems[0]


def test_too_few_pairs_are_bad_and_more_are_asked_for() -> None:
    views = seen_views(pinhole_rig(), CHESSBOARD, POSES[:5])
    solution, assessment = judged(views)
    used = len(solution.pairs)
    assert 3 <= used <= 5
    assert f"Only {used} pairs could be used; 8 are needed." in assessment.problems
    assert f"Photograph at least {12 - used} more pairs of the board." in assessment.advice


def test_a_board_that_is_never_tilted_is_bad() -> None:
    rng = np.random.default_rng(0)
    flat = [(turned(*rng.uniform(-1, 1, 2), z=rng.uniform(-20, 20)), center) for _, center in POSES]
    solution, assessment = judged(seen_views(pinhole_rig(), CHESSBOARD, flat))
    assert np.isfinite(solution.epipolar_rms)
    assert any("never tilted" in problem for problem in assessment.problems)
    assert any("Tilt the board" in advice for advice in assessment.advice)


def test_pairs_that_were_not_taken_at_one_time_are_bad() -> None:
    views = seen_views(pinhole_rig(), CHESSBOARD, POSES)
    rng = np.random.default_rng(0)
    for view in views.views:
        if view.in_both:
            moved(view, 1, tuple(rng.normal(0, 6, 2)))
    assert any("epipolar error" in problem for problem in judged(views)[1].problems)


def test_the_regions_without_corners_are_named() -> None:
    centered = [(rotation, np.array([0.03, 0.0, 0.7])) for rotation, _ in POSES]
    views = seen_views(pinhole_rig(), CHESSBOARD, centered)
    _, assessment = judged(views)
    assert max(assessment.coverage) < 0.5
    (left,) = [advice for advice in assessment.advice if "of the left image" in advice]
    assert "the top left" in left
    assert "the bottom right" in left
    assert "the middle" not in left


def test_a_symmetric_board_is_numbered_alike_in_both_images() -> None:
    from aanet.rig.views import _match_order

    pattern = Pattern.parse("chessboard:7x7", 25)
    (view,) = seen_views(pinhole_rig(), pattern, POSES[:1], noise=0).views
    right = view.corners[1]
    assert right is not None
    for turn in range(4):
        turned_points = np.rot90(right.points.reshape(7, 7, 2), turn).reshape(-1, 2)
        other = View("a", [view.corners[0], Corners(turned_points, right.numbers, 2.0, False)])
        _match_order(other, pattern)
        assert other.corners[1] is not None
        np.testing.assert_array_equal(other.corners[1].points, right.points)
