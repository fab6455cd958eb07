"""Depth files in meters: 16-bit PNG of millimeters, NPY and EXR; unknown is NaN in memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import AanetError, ReadError, UnsupportedError
from aanet.io.atomic import write_bytes
from aanet.io.images import AnyImage, PathLike, decode_image, encode_image, read_bytes
from aanet.io.maps import (
    LARGEST,
    decode_numpy,
    encode_npy,
    known_suffix,
    one_map,
    scale_to_16_bits,
    unscale,
    with_nan,
)
from aanet.typing import FloatMap

DEPTH_SUFFIXES = (".png", ".npy", ".exr")
MILLIMETERS = 1000.0  # depth PNGs store whole millimeters


def read_depth(path: PathLike) -> FloatMap:
    """The depth in meters, [H, W] float32, NaN where unknown, from a millimeter PNG, NPY or EXR."""
    suffix = known_suffix(path, DEPTH_SUFFIXES, "depth")
    data, name = read_bytes(path, "a depth map"), str(path)
    if suffix == ".npy":
        return with_nan(decode_numpy(data, name, key="depth"), name)
    if suffix == ".exr":
        with _needs_exr():
            return with_nan(decode_image(data, name), name)
    stored = one_map(decode_image(data, name), name)
    if stored.dtype != np.uint16:
        raise ReadError(f"{name} has 8 bits a pixel; a depth PNG has 16 and holds millimeters.")
    return unscale(stored, MILLIMETERS)


def write_depth(path: PathLike, depth: NDArray[np.floating]) -> None:
    """Write a depth map in meters; the suffix chooses the format, as in `encode_depth`."""
    write_bytes(path, encode_depth(depth, known_suffix(path, DEPTH_SUFFIXES, "depth")))


def encode_depth(depth: NDArray[np.floating], suffix: str) -> bytes:
    """The bytes of a depth map in meters in the format of `suffix`; not finite or not positive is unknown.

    `.png` rounds to millimeters, and what lies beyond its 65.535 m becomes unknown, as in ROS; `.npy` and
    `.exr` keep float32 as it is.
    """
    values: AnyImage = one_map(depth, "The depth map").astype(np.float32)
    known = np.where(np.isfinite(values) & (values > 0), values, np.float32(np.nan)).astype(np.float32)
    if suffix == ".npy":
        return encode_npy(known)
    if suffix == ".exr":
        with _needs_exr():
            return cv2.imencode(".exr", known)[1].tobytes()
    near = np.where(np.rint(known * MILLIMETERS) <= LARGEST, known, np.float32(np.nan)).astype(np.float32)
    return encode_image(scale_to_16_bits(near, MILLIMETERS), ".png")


@contextlib.contextmanager
def _needs_exr() -> Iterator[None]:
    # OpenCV 4 reads this once, when it first meets an EXR file.
    os.environ.setdefault("OPENCV_IO_ENABLE_OPENEXR", "1")
    try:
        yield
    except (cv2.error, AanetError) as error:
        raise UnsupportedError(
            "This OpenCV cannot read or write EXR (it was built without it, or OPENCV_IO_ENABLE_OPENEXR is 0 "
            "in the environment); use .npy instead."
        ) from error
