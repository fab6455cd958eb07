"""Files that describe rectified pairs only: KITTI, Middlebury, and our own JSON."""

from __future__ import annotations

import re

import numpy as np

from aanet.errors import ReadError
from aanet.geometry.camera import JSON_FORMAT, StereoCamera
from aanet.geometry.formats.reading import Reading, image_size, shaped
from aanet.geometry.key_values import Fields, listed_keys
from aanet.io.text import parse_json, parse_numbers

_KITTI_KEY = re.compile(r"P_rect_0\d|P0|P3")
_MIDDLEBURY_KEYS = ("cam0", "doffs", "baseline", "width", "height")


def recognizes_kitti(fields: Fields) -> bool:
    """Whether the keys are those of KITTI: P1 and P2 alone are OpenCV's names."""
    return any(_KITTI_KEY.fullmatch(key) for key in fields.entries)


def read_kitti(files: list[Fields], _reading: Reading) -> StereoCamera:
    """The color cameras of KITTI: P_rect_02 and P_rect_03 (raw, 2015), or P2 and P3 (odometry, object)."""
    (fields,) = files
    prefix = "P_rect_0" if "P_rect_02" in fields else "P"
    if f"{prefix}2" not in fields or f"{prefix}3" not in fields:
        raise ReadError(f"{fields.name}: expected KITTI's color cameras, {prefix}2 and {prefix}3.")
    left, right = (shaped(fields, f"{prefix}{number}", 3, 4) for number in (2, 3))
    width: int | None = None
    height: int | None = None
    if "S_rect_02" in fields:
        size = shaped(fields, "S_rect_02", 2)
        width, height = image_size(Fields(fields.name, {"size": size})) or (None, None)
    return StereoCamera.from_projections(left, right, width, height)


def read_middlebury(text: str, name: str) -> StereoCamera:
    """Middlebury 2014 and 2021: cam0=[f 0 cx; 0 f cy; 0 0 1], doffs in pixels, baseline in millimeters."""
    lines = (line.partition("=") for line in text.splitlines())
    fields = {key.strip(): value for key, found, value in lines if found}
    numbers = {key: parse_numbers(fields.get(key, "")) for key in _MIDDLEBURY_KEYS}
    if [len(numbers[key]) for key in _MIDDLEBURY_KEYS] != [9, 1, 1, 1, 1]:
        raise ReadError(f"{name}: expected Middlebury's cam0 (3×3), doffs, baseline, width and height.")
    matrix = np.array(numbers["cam0"]).reshape(3, 3)
    sides = {side: np.array(numbers[side]) for side in ("width", "height")}
    width, height = image_size(Fields(name, sides)) or (None, None)
    return StereoCamera(
        fx=float(matrix[0, 0]),
        fy=float(matrix[1, 1]),
        cx=float(matrix[0, 2]),
        cy=float(matrix[1, 2]),
        cx_right=float(matrix[0, 2]) + numbers["doffs"][0],
        baseline_m=numbers["baseline"][0] / 1000,
        width=width,
        height=height,
    )


def read_json(text: str, name: str) -> StereoCamera:
    """What `StereoCamera.save` writes."""
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
            f"got {listed_keys(content)}."
        )
    return StereoCamera(**content)
