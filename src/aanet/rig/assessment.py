"""Whether a calibration can be trusted: coverage of the image, tilt of the board, and other evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aanet.rig.solve import Solution
from aanet.rig.views import SIDES, Views

LARGEST_EPIPOLAR_PX = 1.0
FEWEST_GOOD_PAIRS = 8
_WISHED_PAIRS = 12
_LEAST_TILT, _WISHED_TILT = 10.0, 25.0  # degrees between the most different boards
_LARGE_REPROJECTION_PX = 0.5
_CELLS = 9  # per side; three by three of them are one region
_REGION_CELLS = 3  # with corners, for a region to count as covered
_REGIONS = (
    *("the top left", "the top", "the top right"),
    *("the left edge", "the middle", "the right edge"),
    *("the bottom left", "the bottom", "the bottom right"),
)


@dataclass(frozen=True)
class Assessment:
    """What the views cover, why the calibration is bad, and what to photograph next."""

    coverage: tuple[float, float]  # part of the image with corners, 0 … 1, left and right
    tilt_deg: float  # largest angle between two boards
    problems: list[str]  # a good calibration has none
    advice: list[str]


def assess(views: Views, solution: Solution) -> Assessment:
    """Judge a solution."""
    cells = [_covered_cells(views, solution, side) for side in range(2)]
    tilt = _tilt(solution)
    return Assessment(
        coverage=(float(cells[0].mean()), float(cells[1].mean())),
        tilt_deg=tilt,
        problems=_problems(views, solution, tilt),
        advice=_advice(solution, tilt, cells),
    )


def _problems(views: Views, solution: Solution, tilt: float) -> list[str]:
    problems = []
    x, y, _ = solution.translation.ravel()
    if abs(y) > abs(x):
        problems.append("One camera is above the other; they must be side by side.")
    elif x > 0:
        problems.append("The sides are swapped: the right images are from the left camera.")
    if len(solution.pairs) < FEWEST_GOOD_PAIRS:
        problems.append(f"Only {len(solution.pairs)} pairs could be used; {FEWEST_GOOD_PAIRS} are needed.")
    if tilt < _LEAST_TILT:
        problems.append(
            f"The board was never tilted (its views differ by {tilt:.0f}°); the focal length is a guess."
        )
    if solution.epipolar_rms > LARGEST_EPIPOLAR_PX:
        problems.append(
            f"The epipolar error is {solution.epipolar_rms:.2f} px, above {LARGEST_EPIPOLAR_PX:g} px: check "
            "that the pattern is right, that the board is flat, and that each pair was taken at one time."
        )
    both = sum(view.in_both for view in views.views)
    if len(solution.pairs) < both / 2:
        problems.append(
            f"{both - len(solution.pairs)} of {both} pairs do not fit the others; were the cameras moved?"
        )
    return problems


def _advice(solution: Solution, tilt: float, cells: list[NDArray[np.bool_]]) -> list[str]:
    advice = []
    missing = _WISHED_PAIRS - len(solution.pairs)
    if missing > 0:
        advice.append(f"Photograph at least {missing} more pair{'s' if missing > 1 else ''} of the board.")
    if tilt < _WISHED_TILT:
        advice.append(
            f"Tilt the board by 30° to 45°, to all four sides; so far its views differ by {tilt:.0f}° only."
        )
    for side, covered in zip(SIDES, cells, strict=True):
        regions = covered.reshape(3, 3, 3, 3).sum(axis=(1, 3)).ravel()
        empty = [name for name, count in zip(_REGIONS, regions, strict=True) if count < _REGION_CELLS]
        if empty:
            advice.append(f"Hold the board in {_listed(empty)} of the {side} image.")
    if max(solution.reprojection_rms) > _LARGE_REPROJECTION_PX:
        advice.append("The corners fit poorly: use a flatter board, hold it still, and focus.")
    return advice


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _tilt(solution: Solution) -> float:
    """The largest angle in degrees between the normals of two boards."""
    normals = np.array([pose.rotation[:, 2] for pose in solution.left_poses])
    return float(np.degrees(np.arccos(np.clip(np.abs(normals @ normals.T), 0, 1).min())))


def _covered_cells(views: Views, solution: Solution, side: int) -> NDArray[np.bool_]:
    """Which cells of the image have a corner, [_CELLS, _CELLS]."""
    points = side_points(solution, side)
    width, height = views.size
    columns, rows = (
        np.clip(((points[:, axis] + 0.5) / size * _CELLS).astype(int), 0, _CELLS - 1)
        for axis, size in enumerate((width, height))
    )
    covered = np.zeros((_CELLS, _CELLS), np.bool_)
    covered[rows, columns] = True
    return covered


def side_points(solution: Solution, side: int) -> NDArray[np.float64]:
    """All corners that one camera was calibrated with, in pixels, [N, 2]."""
    found = [corners.points for view in solution.single[side] if (corners := view.corners[side]) is not None]
    return np.concatenate(found)
