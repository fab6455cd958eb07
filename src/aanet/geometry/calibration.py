"""Read calibration files of every supported format into a `Calibration`.

The format is detected from the content of a file, not from its name.
"""

from __future__ import annotations

import re

from aanet.errors import InputError, OptionError, ReadError
from aanet.geometry.camera import JSON_FORMAT, StereoCamera
from aanet.geometry.formats import kalibr, rectified_pairs, ros, stereo_keys
from aanet.geometry.formats.reading import Reading
from aanet.geometry.key_values import Fields, is_storage, read_fields
from aanet.geometry.rectification import Calibration, RawCalibration
from aanet.io.files import MEGABYTE, read_bytes
from aanet.io.images import PathLike
from aanet.io.maps import decode_small_arrays

MAX_CALIBRATION_BYTES = 10 * MEGABYTE

_KNOWN = (
    "KITTI, Middlebury, OpenCV (YAML, XML, JSON), NPZ, a pair of ROS camera_info files, Kalibr's camchain, "
    "or the JSON that StereoCamera.save writes"
)
_KITTI, _ROS, _KALIBR, _STEREO = (
    *("the projection matrices of KITTI", "the camera_info of one ROS camera"),
    *("a camchain of Kalibr", "the result of OpenCV's stereoCalibrate"),
)
_FORMATS = {
    _KITTI: (rectified_pairs.recognizes_kitti, rectified_pairs.read_kitti),
    _ROS: (ros.recognizes, ros.read),
    _KALIBR: (kalibr.recognizes, kalibr.read),
    _STEREO: (stereo_keys.recognizes, stereo_keys.read),
}
_MIDDLEBURY = re.compile(r"^[ \t]*cam0[ \t]*=", re.MULTILINE)
_OWN_JSON = re.compile(rf'"format"\s*:\s*"{JSON_FORMAT}"')


def load_calibration(
    path: PathLike,
    right_path: PathLike | None = None,
    *,
    unit: str | None = None,
    rectified: bool = False,
    resized: bool = False,
) -> Calibration:
    """Read a calibration file of any supported format; `docs/calibration.md` lists the keys that are read.

    A file that does not state the size of the images takes it from the images, in a matcher and in
    `Calibration.rectify`; `Calibration.for_size` sets it.

    Args:
        path: The file; for ROS that of the left camera, for OpenCV possibly the intrinsics only.
        right_path: The file of the right camera (ROS), or the extrinsics (OpenCV).
        unit: Unit of the lengths, "mm", "cm" or "m", which is that of the squares of the chessboard; meters
            if it is not given, unless the cameras would then be more than 2 m apart.
        rectified: Whether the images are already rectified, if the file describes raw and rectified images.
        resized: Whether the images may have been resized (not cropped) since the calibration, which is then
            scaled to their size.
    """
    return parse_calibration(
        read_bytes(path, "a calibration file", MAX_CALIBRATION_BYTES),
        None if right_path is None else read_bytes(right_path, "a calibration file", MAX_CALIBRATION_BYTES),
        names=(str(path), str(right_path)),
        unit=unit,
        rectified=rectified,
        resized=resized,
    )


def parse_calibration(
    content: bytes | str,
    right_content: bytes | str | None = None,
    *,
    names: tuple[str, str] = ("The calibration", "The second calibration file"),
    unit: str | None = None,
    rectified: bool = False,
    resized: bool = False,
) -> Calibration:
    """Parse the content of calibration files, as `load_calibration` does; messages call them `names`."""
    contents = [content] if right_content is None else [content, right_content]
    reading = Reading(unit, rectified)
    source = _of_both_cameras(contents, names, reading) or _of_keys(contents, names, reading)
    return Calibration(source, resized=resized)


def _of_both_cameras(
    contents: list[bytes | str], names: tuple[str, str], reading: Reading
) -> StereoCamera | None:
    """The camera of a file in our JSON or Middlebury's format; None for other files."""
    for content, name in zip(contents, names, strict=False):
        text = "" if _is_archive(content) else _as_text(content)
        for recognized, read in (
            (_OWN_JSON, rectified_pairs.read_json),
            (_MIDDLEBURY, rectified_pairs.read_middlebury),
        ):
            if recognized.search(text):
                _require_alone(contents, name, reading)
                return read(text, name)
    return None


def _of_keys(
    contents: list[bytes | str], names: tuple[str, str], reading: Reading
) -> StereoCamera | RawCalibration:
    files = [_fields(content, name) for content, name in zip(contents, names, strict=False)]
    meanings = [
        what for what, (recognizes, _) in _FORMATS.items() if any(recognizes(fields) for fields in files)
    ]
    if len(meanings) > 1:
        problem = f"{files[0].name} may be {' or '.join(meanings)}"
        raise ReadError(f"{problem}; keep the keys of one of them only.")
    if not meanings and not all(_is_archive(each) or is_storage(_as_text(each)) for each in contents):
        raise _unsupported(files[0].name)
    (meaning,) = meanings or [_STEREO]
    if meaning in (_KITTI, _KALIBR):
        _require_alone(contents, files[0].name, Reading() if meaning == _KALIBR else reading)
    return _FORMATS[meaning][1](files, reading)


def _fields(content: bytes | str, name: str) -> Fields:
    """The keys and values of a file of any syntax."""
    if isinstance(content, bytes) and _is_archive(content):
        return Fields(name, decode_small_arrays(content, name))
    text = _as_text(content)
    try:
        return read_fields(text, name)
    except ReadError as error:
        if is_storage(text) or text.lstrip().startswith("{"):
            raise
        raise _unsupported(name) from error


def _require_alone(contents: list[bytes | str], name: str, reading: Reading) -> None:
    if reading.unit is not None:
        raise InputError(f"{name} has a unit of length that its format fixes; do not give one.")
    if len(contents) > 1:
        raise OptionError(f"{name} describes both cameras", "do not give a second file, {second_file}")


def _unsupported(name: str) -> ReadError:
    return ReadError(f"{name} is not a supported calibration file; expected {_KNOWN}.")


def _is_archive(content: bytes | str) -> bool:
    return isinstance(content, bytes) and content.startswith(b"PK")


def _as_text(content: bytes | str) -> str:
    return content.decode("utf-8-sig", "replace") if isinstance(content, bytes) else content
