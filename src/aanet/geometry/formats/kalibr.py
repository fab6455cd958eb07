"""The camchain.yaml of Kalibr: a chain of two cameras, lengths in meters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aanet.errors import InputError, ReadError
from aanet.geometry.formats.reading import Reading, common_size, is_fisheye, shaped
from aanet.geometry.key_values import Fields
from aanet.geometry.rectification import Matrix, RawCalibration

_NEEDED = ("camera_model", "distortion_model", "intrinsics", "distortion_coeffs")


def recognizes(fields: Fields) -> bool:
    """Whether the keys are those of a camchain."""
    camera = fields.mapping("cam0")
    return camera is not None and camera.first(*_NEEDED) is not None


def read(files: Sequence[Fields], reading: Reading) -> RawCalibration:
    """Read cam0 as the left camera and cam1 as the right one."""
    (fields,) = files
    name = fields.name
    if reading.rectified:
        raise InputError(f"{name} describes raw images; it has no projection matrices of rectified ones.")
    cameras = [fields.mapping(key) for key in ("cam0", "cam1")]
    left, right = cameras
    if left is None or right is None or "cam2" in fields:
        raise ReadError(f"{name}: expected two cameras of Kalibr, cam0 and cam1.")
    matrices, distortions, models = zip(*map(_lens, (left, right)), strict=True)
    if "T_cn_cnm1" not in right:
        raise ReadError(f"{name}: expected T_cn_cnm1 in cam1, the pose of cam0 in its frame.")
    pose = shaped(right, "T_cn_cnm1", 4, 4)
    width, height = common_size((left, right))
    baseline = float(np.linalg.norm(pose[:3, 3]))
    return RawCalibration(
        left_matrix=matrices[0],
        left_distortion=distortions[0],
        right_matrix=matrices[1],
        right_distortion=distortions[1],
        rotation=pose[:3, :3],
        translation=pose[:3, 3:] * reading.meters_per_unit(baseline, name),
        width=width,
        height=height,
        fisheye=is_fisheye(models, distortions, name),
    )


def _lens(camera: Fields) -> tuple[Matrix, Matrix, str | None]:
    """Camera matrix, distortion and distortion model."""
    missing = [key for key in _NEEDED if key not in camera]
    if missing:
        raise ReadError(f"{camera.name}: expected {', '.join(_NEEDED)}; {', '.join(missing)} is missing.")
    model, distortion = (camera.text(key) or "" for key in _NEEDED[:2])
    if model != "pinhole" or distortion not in ("radtan", "equidistant", "equi", "none"):
        raise ReadError(
            f"{camera.name}: the camera model {f'{model}-{distortion}'[:40]!r} of Kalibr is not supported; "
            "expected pinhole-radtan or pinhole-equi."
        )
    fx, fy, cx, cy = shaped(camera, "intrinsics", 4)
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    if distortion == "none":
        return matrix, np.zeros((4, 1)), "pinhole"
    return matrix, shaped(camera, "distortion_coeffs", 4, 1), distortion
