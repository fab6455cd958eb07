"""From corners to a calibrated rig: the two cameras, the pose of the right one, and views that do not fit."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from aanet.errors import InputError
from aanet.geometry.rectification import RawCalibration, Rectification, stereo_rectify
from aanet.rig.lens import STOP, Fit, Lens, Matrix, Model, Pose, errors, fisheye_flag, fit_lens, rms
from aanet.rig.views import FEWEST_PAIRS, SIDES, View, Views

_ROUNDS = 8  # of leaving out outliers
_TIMES_MEDIAN = 3.0  # an outlier's error exceeds that of the other views by this factor
_SMALLEST_OUTLIER = 0.4  # pixels; a view that fits better is none in any case


@dataclass(frozen=True)
class Solution:
    """A calibrated rig, and how well each view fits it."""

    lenses: tuple[Lens, Lens]
    rotation: Matrix  # [3, 3], from the left camera's frame to the right one's
    translation: Matrix  # [3, 1], meters
    rectification: Rectification
    pairs: list[View]  # used for the pose of the right camera
    single: tuple[list[View], list[View]]  # used for the lens of the left and of the right camera
    left_poses: list[Pose]  # of the board, for each of `pairs`
    reprojection: tuple[dict[str, float], dict[str, float]]  # view → RMS in pixels, left and right
    reprojection_rms: tuple[float, float]
    epipolar: dict[str, float]  # pair → RMS of the vertical distance in the rectified images, in pixels
    epipolar_rms: float


def solve(views: Views, model: Model) -> Solution:
    """Calibrate each camera by itself with all of its views, then their relative pose with the pairs.

    Views that do not fit get a `reason` and are left out.
    """
    fits, single, per_view, totals = [], [], [], []
    for side in range(2):
        fit, kept = _fit_camera(views, side, model)
        distances = errors(fit, *_observations(views, kept, side))
        fits.append(fit)
        single.append(kept)
        per_view.append({view.name: rms([each]) for view, each in zip(kept, distances, strict=True)})
        totals.append(rms(distances))
    names = [set(each) for each in per_view]
    pairs = [view for view in views.views if view.name in names[0] & names[1] and view.in_both]
    rotation, translation, pairs = _fit_pose(views, pairs, fits, single)
    left_poses = _poses(fits[0], single[0], pairs)
    lenses = (fits[0].lens, fits[1].lens)
    rectification = rectify(lenses, rotation, translation, views.size)
    rows = {view.name: _row_distances(views, view, lenses, rectification) for view in pairs}
    return Solution(
        lenses,
        rotation,
        translation,
        rectification,
        pairs,
        (single[0], single[1]),
        left_poses,
        (per_view[0], per_view[1]),
        (totals[0], totals[1]),
        {name: rms([each]) for name, each in rows.items() if len(each)},
        rms(list(rows.values())),
    )


def rectify(
    lenses: tuple[Lens, Lens], rotation: Matrix, translation: Matrix, size: tuple[int, int]
) -> Rectification:
    """Rotations and projections that make the rows of the two images correspond."""
    left, right = lenses
    return stereo_rectify(
        RawCalibration(
            left.matrix,
            left.distortion,
            right.matrix,
            right.distortion,
            rotation,
            translation,
            *size,
            fisheye=left.model == "fisheye",
        )
    )


def _observations(views: Views, kept: list[View], side: int) -> tuple[list[Matrix], list[Matrix]]:
    """The corners of each view on the board and in the image."""
    corners = [each for view in kept if (each := view.corners[side]) is not None]
    return [views.pattern.points[each.numbers] for each in corners], [each.points for each in corners]


def _fit_camera(views: Views, side: int, model: Model) -> tuple[Fit, list[View]]:
    """Fit one camera, and leave out views again and again until all that remain fit."""
    kept = views.seen_by(side)
    for _ in range(_ROUNDS):
        boards, points = _observations(views, kept, side)
        fit = fit_lens(model, boards, points, views.size)
        per_view = [rms([each]) for each in errors(fit, boards, points)]
        bad = _outliers(per_view)
        if not bad:
            break
        for index in bad:
            kept[index].reason = f"an outlier in the {SIDES[side]} image, {per_view[index]:.1f} px off"
        kept = [view for index, view in enumerate(kept) if index not in bad]
    return fit, kept


def _outliers(per_view: list[float]) -> set[int]:
    """Views whose error stands out; never so many that too few remain."""
    limit = max(_SMALLEST_OUTLIER, _TIMES_MEDIAN * float(np.median(per_view)))
    worst_first = sorted(range(len(per_view)), key=lambda index: -per_view[index])
    droppable = worst_first[: max(0, len(per_view) - FEWEST_PAIRS)]
    return {index for index in droppable if per_view[index] > limit}


def _fit_pose(
    views: Views, pairs: list[View], fits: list[Fit], single: list[list[View]]
) -> tuple[Matrix, Matrix, list[View]]:
    """The pose of the right camera; pairs whose boards moved between the two exposures are left out."""
    if not pairs:
        raise InputError("No pair fits in both cameras; check that the pairs were taken at the same time.")
    for _ in range(_ROUNDS):
        rotation, translation = _stereo_calibrate(views, pairs, (fits[0].lens, fits[1].lens))
        distances = []
        for view, pose in zip(pairs, _poses(fits[0], single[0], pairs), strict=True):
            numbers, (_, right) = views.common(view)
            seen = fits[1].lens.project(views.pattern.points[numbers], pose.moved_by(rotation, translation))
            distances.append(rms([np.linalg.norm(seen - right, axis=1)]))
        bad = _outliers(distances)
        if not bad:
            break
        for index in bad:
            off = f"{distances[index]:.1f} px off"
            pairs[index].reason = f"an outlier, the two images do not fit together ({off})"
        pairs = [view for index, view in enumerate(pairs) if index not in bad]
    return rotation, translation, pairs


def _poses(fit: Fit, kept: list[View], wanted: list[View]) -> list[Pose]:
    by_name = {view.name: pose for view, pose in zip(kept, fit.poses, strict=True)}
    return [by_name[view.name] for view in wanted]


def _stereo_calibrate(views: Views, pairs: list[View], lenses: tuple[Lens, Lens]) -> tuple[Matrix, Matrix]:
    """The rotation and the translation from the left camera's frame to the right one's."""
    common = [views.common(view) for view in pairs]
    boards = [views.pattern.points[numbers] for numbers, _ in common]
    observed = [boards, *([points[side] for _, points in common] for side in range(2))]
    left, right = ((lens.matrix, lens.distortion) for lens in lenses)
    try:
        if lenses[0].model == "fisheye":
            # It needs the same number of corners in each view, so that some are repeated.
            most = max(map(len, boards))
            first, second, third = (
                [np.resize(each, (most, each.shape[1])).reshape(1, most, -1) for each in part]
                for part in observed
            )
            fixed = fisheye_flag("CALIB_FIX_INTRINSIC")
            _, _, _, _, _, rotation, translation, *_ = cv2.fisheye.stereoCalibrate(
                first, second, third, *left, *right, views.size, flags=fixed, criteria=STOP
            )
        else:
            first, second, third = ([each.astype(np.float32) for each in part] for part in observed)
            fixed = cv2.CALIB_FIX_INTRINSIC
            _, _, _, _, _, rotation, translation, *_ = cv2.stereoCalibrate(
                first, second, third, *left, *right, views.size, flags=fixed, criteria=STOP
            )
    except cv2.error as error:
        raise InputError(f"The pairs do not determine the cameras' poses (OpenCV: {error.err}).") from error
    return np.asarray(rotation, np.float64), np.asarray(translation, np.float64).reshape(3, 1)


def _row_distances(
    views: Views, view: View, lenses: tuple[Lens, Lens], rectification: Rectification
) -> Matrix:
    """How far corresponding corners are from the same row of the rectified images, in pixels, [N]."""
    _, (left, right) = views.common(view)
    first = lenses[0].rectify(left, rectification.left_rotation, rectification.left_projection)
    second = lenses[1].rectify(right, rectification.right_rotation, rectification.right_projection)
    # Corners at the border of a fisheye image are far outside of the rectified one, or nowhere.
    both = np.stack([first, second])
    inside = ((both > -0.5) & (both < np.array(views.size) - 0.5)).all(axis=(0, 2))
    if not inside.any():
        inside = np.isfinite(both).all(axis=(0, 2))
    return (first - second)[inside, 1]
