"""Read calibration files of KITTI, Middlebury, OpenCV and ROS, and our own JSON.

The format is detected from the content of a file, not from its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from aanet.errors import InputError, ReadError
from aanet.geometry.camera import JSON_FORMAT, StereoCamera
from aanet.geometry.opencv_storage import is_storage, read_storage
from aanet.geometry.rectification import Calibration, Matrix, RawCalibration
from aanet.io.files import MEGABYTE, read_bytes
from aanet.io.headers import MAX_SIDE
from aanet.io.images import PathLike
from aanet.io.text import parse_json, parse_numbers

MAX_CALIBRATION_BYTES = 10 * MEGABYTE

_KNOWN = (
    "KITTI (calib.txt, calib_cam_to_cam.txt), Middlebury (calib.txt), an OpenCV FileStorage (YAML, XML or "
    "JSON), a pair of ROS camera_info files, or the JSON that StereoCamera.save writes"
)
# Common names for the results of cv2.stereoCalibrate.
_OPENCV_NAMES = {
    "left_matrix": ("M1", "K1", "cameraMatrix1", "camera_matrix_left", "left_camera_matrix"),
    "right_matrix": ("M2", "K2", "cameraMatrix2", "camera_matrix_right", "right_camera_matrix"),
    "left_distortion": ("D1", "distCoeffs1", "dist_coeffs_left", "left_distortion"),
    "right_distortion": ("D2", "distCoeffs2", "dist_coeffs_right", "right_distortion"),
    "rotation": ("R", "rotation"),
    "translation": ("T", "translation"),
}
_OPENCV_SIDES = (("image_width", "image_height"), ("width", "height"))
_OPENCV_SIZES = ("imageSize", "image_size", "size")
_OPENCV_KEYS = {
    *("P1", "P2"),
    *(key for keys in (*_OPENCV_NAMES.values(), *_OPENCV_SIDES, _OPENCV_SIZES) for key in keys),
}


def load_calibration(
    path: PathLike,
    right_path: PathLike | None = None,
    *,
    size: tuple[int, int] | None = None,
    meters_per_unit: float = 1.0,
) -> Calibration:
    """Read a calibration file of any supported format.

    Args:
        path: The file; for ROS that of the left camera, for OpenCV possibly the intrinsics only.
        right_path: The file of the right camera (ROS), or the extrinsics (OpenCV).
        size: Width and height of the images, for OpenCV files that do not state it; a matcher takes it from
            the images.
        meters_per_unit: Length unit of an OpenCV calibration, which is that of the chessboard's squares.
    """
    return parse_calibration(
        read_bytes(path, "a calibration file", MAX_CALIBRATION_BYTES),
        None if right_path is None else read_bytes(right_path, "a calibration file", MAX_CALIBRATION_BYTES),
        names=(str(path), str(right_path)),
        size=size,
        meters_per_unit=meters_per_unit,
    )


def parse_calibration(
    content: bytes | str,
    right_content: bytes | str | None = None,
    *,
    names: tuple[str, str] = ("The calibration", "The right calibration"),
    size: tuple[int, int] | None = None,
    meters_per_unit: float = 1.0,
) -> Calibration:
    """Parse the content of calibration files, as `load_calibration` does; messages call them `names`."""
    if not 1e-9 <= meters_per_unit <= 1e6:
        raise InputError(f"The unit of a calibration must be a positive number; got {meters_per_unit}.")
    text, name = _as_text(content), names[0]
    right = None if right_content is None else _as_text(right_content)
    if is_storage(text):
        fields = read_storage(text, name, _OPENCV_KEYS)
        if right is not None:
            fields |= read_storage(right, names[1], _OPENCV_KEYS)
        return Calibration(_from_opencv(fields, name, size, meters_per_unit))
    if meters_per_unit != 1:
        raise InputError(
            f"The length unit of {name} is fixed by its format; one can be given for OpenCV files only."
        )
    if re.search(r"^[ \t]*(projection_matrix|P):", text, re.MULTILINE):
        if right is None:
            raise InputError(f"{name} is a ROS camera_info of one camera; give the other camera's file too.")
        return Calibration(_from_ros(text, right, *names))
    if right is not None:
        raise InputError(f"{name} describes both cameras; a second calibration file is not expected.")
    if text.lstrip().startswith("{"):
        return Calibration(_from_json(text, name))
    if re.search(r"^cam0[ \t]*=", text, re.MULTILINE):
        return Calibration(_from_middlebury(text, name))
    if re.search(r"^P(_rect_0)?\d:", text, re.MULTILINE):
        return Calibration(_from_kitti(text, name))
    raise ReadError(f"{name} is not a supported calibration file; expected {_KNOWN}.")


def _from_json(text: str, name: str) -> StereoCamera:
    content = parse_json(text, name)
    if content.pop("format", None) != JSON_FORMAT:
        raise ReadError(f'{name} is JSON, but not a camera: expected "format": "{JSON_FORMAT}".')
    needed, optional = ("fx", "cx", "cy", "baseline_m"), ("width", "height", "cx_right", "fy")
    numbers = [
        key
        for key, value in content.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    absent = [key for key, value in content.items() if value is None and key in optional]
    if not set(needed) <= set(numbers) or not set(content) == {*numbers, *absent} <= {*needed, *optional}:
        raise ReadError(
            f"{name}: expected the numbers {', '.join(needed)}, and optionally {', '.join(optional)}; "
            f"got {', '.join(_printable(key) for key in content)}."
        )
    return StereoCamera(**content)


def _from_kitti(text: str, name: str) -> StereoCamera:
    """The color cameras of KITTI: P_rect_02 and P_rect_03 (raw, 2015), or P2 and P3 (odometry, object)."""
    lines = _fields(text, ":")
    prefix = "P_rect_0" if "P_rect_02" in lines else "P"
    pair = [lines.get(f"{prefix}{number}", "") for number in (2, 3)]
    projections = [parse_numbers(line) for line in pair]
    if any(len(values) != 12 for values in projections):
        raise ReadError(f"{name}: expected twelve numbers in {prefix}2 and in {prefix}3.")
    width: int | None = None
    height: int | None = None
    if "S_rect_02" in lines:
        size = [_whole(value, name) for value in parse_numbers(lines["S_rect_02"])]
        if len(size) != 2:
            raise ReadError(f"{name}: expected the width and the height of the images in S_rect_02.")
        width, height = size
    left, right = (np.array(values).reshape(3, 4) for values in projections)
    return StereoCamera.from_projections(left, right, width, height)


def _from_middlebury(text: str, name: str) -> StereoCamera:
    """Middlebury 2014 and 2021: cam0=[f 0 cx; 0 f cy; 0 0 1], doffs in pixels, baseline in millimeters."""
    fields = _fields(text, "=")
    wanted = ("cam0", "doffs", "baseline", "width", "height")
    numbers = {key: parse_numbers(fields.get(key, "")) for key in wanted}
    if [len(numbers[key]) for key in wanted] != [9, 1, 1, 1, 1]:
        raise ReadError(f"{name}: expected Middlebury's cam0 (3×3), doffs, baseline, width and height.")
    matrix = np.array(numbers["cam0"]).reshape(3, 3)
    return StereoCamera(
        fx=float(matrix[0, 0]),
        fy=float(matrix[1, 1]),
        cx=float(matrix[0, 2]),
        cy=float(matrix[1, 2]),
        cx_right=float(matrix[0, 2]) + numbers["doffs"][0],
        baseline_m=numbers["baseline"][0] / 1000,
        width=_whole(numbers["width"][0], name),
        height=_whole(numbers["height"][0], name),
    )


def _from_ros(left: str, right: str, left_name: str, right_name: str) -> StereoCamera:
    """Two camera_info files, whose projection matrices are those of the rectified images."""
    projections = []
    for text, name in ((left, left_name), (right, right_name)):
        block = re.search(r"^(?:projection_matrix|P):(.*?)(?=^[A-Za-z]|\Z)", text, re.MULTILINE | re.DOTALL)
        values = parse_numbers(block[1].split("data:")[-1]) if block else []
        if len(values) != 12:
            raise ReadError(f"{name}: expected a ROS camera_info with twelve numbers in projection_matrix.")
        projections.append(np.array(values).reshape(3, 4))
    fields = _fields(left, ":")
    sides: list[int | None] = []
    for side in ("width", "height"):
        stated = fields.get(f"image_{side}", fields.get(side))
        values = [] if stated is None else parse_numbers(stated.partition("#")[0])
        sides.append(None if stated is None else _whole(values[0] if len(values) == 1 else 0, left_name))
    width, height = sides
    return StereoCamera.from_projections(projections[0], projections[1], width, height)


def _from_opencv(
    fields: Mapping[str, Matrix], name: str, size: tuple[int, int] | None, meters_per_unit: float
) -> StereoCamera | RawCalibration:
    found = {
        part: next((fields[key] for key in keys if key in fields), None)
        for part, keys in _OPENCV_NAMES.items()
    }
    width, height = size or _opencv_size(fields, name)
    missing = [_OPENCV_NAMES[part][0] for part, value in found.items() if value is None]
    if not missing:
        values = {part: value for part, value in found.items() if value is not None}
        return _raw(values, name, meters_per_unit, width, height)
    if "P1" in fields and "P2" in fields:
        left, right = (fields[key] for key in ("P1", "P2"))
        if left.shape != (3, 4) or right.shape != (3, 4):
            raise ReadError(f"{name}: expected 3×4 projection matrices in P1 and P2.")
        left[0, 3], right[0, 3] = left[0, 3] * meters_per_unit, right[0, 3] * meters_per_unit
        return StereoCamera.from_projections(left, right, width, height)
    raise ReadError(f"{name}: expected the results of cv2.stereoCalibrate; {', '.join(missing)} is missing.")


def _raw(
    values: Mapping[str, Matrix], name: str, meters_per_unit: float, width: int | None, height: int | None
) -> RawCalibration:
    for part, entries in (("left_matrix", 9), ("right_matrix", 9), ("rotation", 9), ("translation", 3)):
        if values[part].size != entries:
            raise ReadError(f"{name}: expected {entries} numbers in {_OPENCV_NAMES[part][0]}.")
    translation = values["translation"].reshape(3, 1) * meters_per_unit
    if np.linalg.norm(translation) > 10:
        raise InputError(
            f"{name}: the baseline would be {np.linalg.norm(translation):.4g} m; if the file is in "
            "millimeters, set the unit to 0.001 meters (meters_per_unit=0.001, or --meters-per-unit 0.001)."
        )
    return RawCalibration(
        left_matrix=values["left_matrix"].reshape(3, 3),
        right_matrix=values["right_matrix"].reshape(3, 3),
        left_distortion=values["left_distortion"].reshape(-1, 1),
        right_distortion=values["right_distortion"].reshape(-1, 1),
        rotation=values["rotation"].reshape(3, 3),
        translation=translation,
        width=width,
        height=height,
    )


def _opencv_size(fields: Mapping[str, Matrix], name: str) -> tuple[int | None, int | None]:
    for sides in _OPENCV_SIDES:
        if all(side in fields and fields[side].size == 1 for side in sides):
            width, height = (_whole(fields[side].item(), name) for side in sides)
            return width, height
    for key in _OPENCV_SIZES:
        if key in fields and fields[key].size == 2:
            width, height = (_whole(value, name) for value in fields[key].ravel().tolist())
            return width, height
    return None, None


def _fields(text: str, separator: str) -> dict[str, str]:
    """The fields of lines such as "key: value"."""
    parts = (line.partition(separator) for line in text.splitlines())
    return {key.rstrip(): value.strip() for key, found, value in parts if found}


def _whole(value: float, name: str) -> int:
    """A side of the images in pixels."""
    if not 1 <= value <= MAX_SIDE or value != int(value):
        raise ReadError(
            f"{name}: expected a width and a height of 1 to {MAX_SIDE} whole pixels; got {value:g}."
        )
    return int(value)


def _printable(text: str) -> str:
    return text[:30].encode("ascii", "backslashreplace").decode()


def _as_text(content: bytes | str) -> str:
    return content.decode("utf-8-sig", "replace") if isinstance(content, bytes) else content
