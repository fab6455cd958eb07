"""Depth files: 16-bit PNG in millimeters and NPY in meters; unknown values are NaN in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aanet.errors import ReadError
from aanet.io.atomic import write_bytes
from aanet.io.files import read_bytes
from aanet.io.images import MAX_PIXEL_BYTES, AnyImage, PathLike, decode_image, encode_image
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

DEPTH_SUFFIXES = (".png", ".npy")
MILLIMETERS = 1000.0  # depth PNGs store whole millimeters


def read_depth(path: PathLike) -> FloatMap:
    """Read a depth map in meters, [H, W] float32, NaN where unknown, from a PNG in millimeters or an NPY."""
    suffix = known_suffix(path, DEPTH_SUFFIXES, "depth")
    data, name = read_bytes(path, "a depth map", MAX_PIXEL_BYTES), str(path)
    if suffix == ".npy":
        return with_nan(decode_numpy(data, name, key="depth"), name)
    stored = one_map(decode_image(data, name), name)
    if stored.dtype != np.uint16:
        raise ReadError(f"{name} has 8 bits per pixel; a depth PNG has 16 bits and stores millimeters.")
    return unscale(stored, MILLIMETERS)


def write_depth(path: PathLike, depth: NDArray[np.floating]) -> None:
    """Write a depth map in meters; the suffix chooses the format, as in `encode_depth`."""
    write_bytes(path, encode_depth(depth, known_suffix(path, DEPTH_SUFFIXES, "depth")))


def encode_depth(depth: NDArray[np.floating], suffix: str) -> bytes:
    """Encode a depth map in meters in the format of `suffix`.

    Values that are not finite or not positive are unknown.  `.png` rounds to millimeters, and depths beyond
    65.535 m become unknown, as in ROS; `.npy` stores float32.
    """
    values: AnyImage = one_map(depth, "The depth map").astype(np.float32)
    known = np.where(np.isfinite(values) & (values > 0), values, np.float32(np.nan)).astype(np.float32)
    if suffix == ".npy":
        return encode_npy(known)
    near = np.where(np.rint(known * MILLIMETERS) <= LARGEST, known, np.float32(np.nan)).astype(np.float32)
    return encode_image(scale_to_16_bits(near, MILLIMETERS), ".png")
