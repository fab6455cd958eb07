"""Pairs of ROS camera_info: the files of camera_calibration, and what `topic echo` prints in ROS 1 and 2.

A camera_info describes raw images (K, D) and how to rectify them (R, P), and thereby rectified ones as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aanet.errors import OptionError, ReadError
from aanet.geometry.camera import StereoCamera
from aanet.geometry.formats.reading import Reading, common_size, is_fisheye, shaped
from aanet.geometry.key_values import Fields
from aanet.geometry.rectification import Matrix, RawCalibration, Rectification

_MATRIX = ("camera_matrix", "K", "k")
_DISTORTION = ("distortion_coefficients", "D", "d")
_ROTATION = ("rectification_matrix", "R", "r")
_PROJECTION = ("projection_matrix", "P", "p")


def recognizes(fields: Fields) -> bool:
    """Whether the keys are those of a camera_info."""
    return fields.first(*_PROJECTION) is not None


def read(files: Sequence[Fields], reading: Reading) -> StereoCamera | RawCalibration:
    """Read the camera_info of the left and of the right camera."""
    if len(files) == 1:
        problem = f"{files[0].name} is the calibration of one camera (a ROS camera_info)"
        raise OptionError(problem, "give the file of the right camera too, {second_file}")
    for fields in files:
        _require_whole_image(fields)
    left, right = (_projection(fields) for fields in files)
    baseline = float(left[0, 3] - right[0, 3]) / float(left[0, 0])
    if baseline == 0:
        raise ReadError(
            f"{files[1].name}: the projection matrix is that of a single camera; expected that of the right "
            "camera of a stereo calibration, with −fx · baseline in the last column."
        )
    meters = reading.meters_per_unit(abs(baseline), files[1].name)
    left[:, 3], right[:, 3] = left[:, 3] * meters, right[:, 3] * meters
    width, height = common_size(files)
    camera = StereoCamera.from_projections(left, right, width, height)
    if reading.rectified:
        return camera
    lenses = [_lens(fields) for fields in files]
    (left_matrix, left_distortion, left_turn), (right_matrix, right_distortion, right_turn) = lenses
    models = [fields.text("distortion_model") for fields in files]
    return RawCalibration(
        left_matrix=left_matrix,
        left_distortion=left_distortion,
        right_matrix=right_matrix,
        right_distortion=right_distortion,
        # A point is R1 X in the left rectified frame and R1 X − (baseline, 0, 0) in the right one.
        rotation=right_turn.T @ left_turn,
        translation=right_turn.T @ np.array([[-camera.baseline_m], [0.0], [0.0]]),
        width=width,
        height=height,
        fisheye=is_fisheye(models, (left_distortion, right_distortion), files[0].name),
        rectification=Rectification(left_turn, right_turn, left, right),
    )


def _lens(fields: Fields) -> tuple[Matrix, Matrix, Matrix]:
    """Camera matrix, distortion and rotation, with which raw images are rectified."""
    keys = [fields.first(*names) for names in (_MATRIX, _DISTORTION, _ROTATION)]
    matrix, distortion, rotation = keys
    if matrix is None or distortion is None or rotation is None:
        names = (_MATRIX[0], _DISTORTION[0], _ROTATION[0])
        missing = ", ".join(name for name, key in zip(names, keys, strict=True) if key is None)
        raise OptionError(
            f"{fields.name}: raw images cannot be rectified without {missing}",
            "if the images are rectified already, give {rectified}",
        )
    coefficients = fields.numbers(distortion).reshape(-1, 1)
    if not coefficients.size:  # an ideal camera, for instance of a simulator
        coefficients = np.zeros((5, 1))
    return shaped(fields, matrix, 3, 3), coefficients, shaped(fields, rotation, 3, 3)


def _projection(fields: Fields) -> Matrix:
    key = fields.first(*_PROJECTION)
    if key is None:
        raise ReadError(f"{fields.name}: expected a ROS camera_info with {_PROJECTION[0]} (or P, p).")
    projection = shaped(fields, key, 3, 4)
    if projection[0, 0] <= 0:
        raise ReadError(f"{fields.name}: the focal length in {key} is not positive; calibrate the camera.")
    return projection


def _require_whole_image(fields: Fields) -> None:
    """Refuse images that are binned or cropped after the calibration."""
    binned = [key for key in ("binning_x", "binning_y") if key in fields and (fields.numbers(key) > 1).any()]
    roi = fields.mapping("roi")
    offsets = ("x_offset", "y_offset")
    cropped = roi is not None and any(key in roi and roi.numbers(key).any() for key in offsets)
    if binned or cropped:
        what = binned[0] if binned else "roi"
        raise ReadError(f"{fields.name}: images that are binned or cropped ({what}) are not supported.")
