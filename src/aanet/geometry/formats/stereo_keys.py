"""The results of `cv2.stereoCalibrate` under their common names, in OpenCV's files, YAML, JSON or NPZ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aanet.errors import OptionError, ReadError
from aanet.geometry.camera import StereoCamera
from aanet.geometry.formats import rectified_pairs
from aanet.geometry.formats.reading import Reading, common_size, is_fisheye, shaped, stated_unit
from aanet.geometry.key_values import Fields, listed_keys
from aanet.geometry.rectification import Matrix, RawCalibration

_MATRIX = ("K", "M", "mtx", "cameraMatrix", "camera_matrix", "intrinsics", "intrinsic_matrix")
_DISTORTION = (
    *("D", "dist", "distCoeffs", "distCoeff", "dist_coeffs", "dist_coeff", "distortion"),
    *("distortion_coefficients", "cameraDistcoeff"),
)
_PROJECTION = ("P", "projMatrix", "projection_matrix")
_LEFT = ("{}1", "{}_1", "{}L", "{}_L", "{}l", "{}_l", "{}_left", "{}Left", "left_{}")
_RIGHT = ("{}2", "{}_2", "{}R", "{}_R", "{}r", "{}_r", "{}_right", "{}Right", "right_{}")


def _spellings(quantity: tuple[str, ...], side: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(form.format(stem) for form in side for stem in quantity)


# Every spelling of each part of a calibration.
KEYS = {
    "left camera matrix": _spellings(_MATRIX, _LEFT),
    "right camera matrix": _spellings(_MATRIX, _RIGHT),
    "left distortion": _spellings(_DISTORTION, _LEFT),
    "right distortion": _spellings(_DISTORTION, _RIGHT),
    "rotation": ("R", "rotation", "rotation_matrix", "Rot"),
    "translation": ("T", "t", "translation", "translation_vector", "Trans"),
}
PROJECTION_KEYS = {
    "left projection": _spellings(_PROJECTION, _LEFT),
    "right projection": _spellings(_PROJECTION, _RIGHT),
}
_LENS_KEYS = {key for part, keys in KEYS.items() if part.startswith(("left", "right")) for key in keys}
_PROJECTION_KEYS = {key for keys in PROJECTION_KEYS.values() for key in keys}


def recognizes(fields: Fields) -> bool:
    """Whether a key is one for the left or the right camera of a pair; KITTI has P1 and P2 as well."""
    projections = not rectified_pairs.recognizes_kitti(fields) and _PROJECTION_KEYS & set(fields.entries)
    return bool(projections) or not _LENS_KEYS.isdisjoint(fields.entries)


def read(files: Sequence[Fields], reading: Reading) -> StereoCamera | RawCalibration:
    """Read a calibration in one file, or its intrinsics and its extrinsics in two."""
    if reading.rectified:
        return _read_rectified(files, reading)
    found = {part: _find(files, part, keys) for part, keys in KEYS.items()}
    missing = [part for part, place in found.items() if place is None]
    if missing:
        raise _incomplete(files, missing)
    places = {part: place for part, place in found.items() if place is not None}

    def values(part: str, *shape: int) -> Matrix:
        fields, key = places[part]
        return shaped(fields, key, *shape) if shape else fields.numbers(key).reshape(-1, 1)

    distortions = values("left distortion"), values("right distortion")
    translation = values("translation", 3, 1)
    width, height = common_size(files)
    models = [fields.text("distortion_model") for fields in files]
    name = files[0].name
    baseline = float(np.linalg.norm(translation))
    meters = reading.meters_per_unit(baseline, places["translation"][0].name, stated_unit(files))
    return RawCalibration(
        left_matrix=values("left camera matrix", 3, 3),
        left_distortion=distortions[0],
        right_matrix=values("right camera matrix", 3, 3),
        right_distortion=distortions[1],
        rotation=values("rotation", 3, 3),
        translation=translation * meters,
        width=width,
        height=height,
        fisheye=is_fisheye(models, distortions, name),
    )


def _read_rectified(files: Sequence[Fields], reading: Reading) -> StereoCamera:
    places = [_find(files, part, keys) for part, keys in PROJECTION_KEYS.items()]
    found = [place for place in places if place is not None]
    if len(found) < 2:
        raise ReadError(
            f"{files[0].name}: rectified images are described by projection matrices (P1 and P2), which are "
            f"missing; it has {listed_keys(files[0].entries)}."
        )
    left, right = (shaped(fields, key, 3, 4).copy() for fields, key in found)
    baseline = abs(float(left[0, 3] - right[0, 3])) / max(float(left[0, 0]), 1e-6)
    meters = reading.meters_per_unit(baseline, found[1][0].name, stated_unit(files))
    left[:, 3], right[:, 3] = left[:, 3] * meters, right[:, 3] * meters
    return StereoCamera.from_projections(left, right, *common_size(files))


def _find(files: Sequence[Fields], part: str, keys: Sequence[str]) -> tuple[Fields, str] | None:
    """The file and the key of a part; a part that is there twice must be the same."""
    found = [(fields, key) for fields in files for key in keys if key in fields]
    values = [fields.numbers(key) for fields, key in found]
    for (fields, key), other in zip(found[1:], values[1:], strict=True):
        if not np.array_equal(values[0].ravel(), other.ravel()):
            first = f"{found[0][1]} in {found[0][0].name}"
            raise ReadError(
                f"Both {first} and {key} in {fields.name} may be the {part}, and they differ; keep one."
            )
    return found[0] if found else None


def _incomplete(files: Sequence[Fields], missing: Sequence[str]) -> ReadError | OptionError:
    name = files[0].name
    projections = all(_find(files, part, keys) is not None for part, keys in PROJECTION_KEYS.items())
    intrinsics = [part for part in missing if part not in ("rotation", "translation")]
    if projections and len(intrinsics) == 4:
        return OptionError(
            f"{name} has projection matrices but no camera matrices, so it may be the calibration of "
            "rectified images, or the second half of one of raw images",
            "give {rectified} in the first case, and the file of the intrinsics, {second_file}, in the other",
        )
    if not intrinsics and len(files) == 1:
        return OptionError(
            f"{name} has no {' and no '.join(missing)} between the cameras (R, T)",
            "if they are in a second file, give it too, {second_file}",
        )
    return ReadError(
        f"{name}: {', '.join(missing)} missing; expected keys such as K1, M1, mtxL, cameraMatrixL or "
        "camera_matrix_left, D1, distL or dist_coeffs_left, the same for the right camera, R and T; it has "
        f"{listed_keys(files[0].entries)}."
    )
