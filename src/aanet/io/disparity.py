"""Disparity files.

Unknown values are NaN in memory; `docs/conventions.md` describes how each format stores them.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError, ReadError
from aanet.io.atomic import write_bytes
from aanet.io.files import read_bytes
from aanet.io.headers import MAX_SIDE
from aanet.io.images import MAX_PIXEL_BYTES, AnyImage, PathLike, decode_image, encode_image
from aanet.io.maps import (
    LARGEST,
    decode_numpy,
    encode_npy,
    encode_npz,
    known_suffix,
    one_map,
    scale_to_16_bits,
    unscale,
    with_nan,
)
from aanet.io.text import parse_numbers
from aanet.typing import FloatMap

DISPARITY_SUFFIXES = (".png", ".pfm", ".npy", ".npz")

KITTI_SCALE = 256.0  # KITTI's 16-bit PNG stores 256 times the disparity


def read_disparity(path: PathLike, scale: float | None = None) -> FloatMap:
    """Read a disparity map in pixels, [H, W] float32, NaN where unknown.

    Args:
        path: A `.png`, `.pfm`, `.npy` or `.npz` file.
        scale: The value that a PNG stores for one pixel of disparity.  It defaults to KITTI's 256 for 16-bit
            files and must be given for 8-bit files (Middlebury: 8 in 2001, 4 in 2003, 3 for the third-size
            maps of 2005 and 2006).
    """
    suffix = known_suffix(path, DISPARITY_SUFFIXES, "disparity")
    data, name = read_bytes(path, "a disparity map", MAX_PIXEL_BYTES), str(path)
    if suffix == ".png":
        return _decode_png(decode_image(data, name), name, scale)
    if suffix == ".pfm":
        return with_nan(decode_pfm(data, name), name)
    return with_nan(decode_numpy(data, name, key="disparity"), name)


def write_disparity(path: PathLike, disparity: NDArray[np.floating]) -> None:
    """Write a disparity map in pixels; the suffix chooses the format, as in `encode_disparity`."""
    suffix = known_suffix(path, DISPARITY_SUFFIXES, "disparity")
    write_bytes(path, encode_disparity(disparity, suffix, str(path)))


def encode_disparity(disparity: NDArray[np.floating], suffix: str, name: str = "The disparity map") -> bytes:
    """Encode a disparity map in pixels in the format of `suffix`; values that are not finite are unknown.

    `.png` rounds to 1/256 px and holds 0 to 255.99 px; the other formats store float32.  Error messages call
    the map `name`.
    """
    values = one_map(disparity, name).astype(np.float32)
    if suffix == ".png":
        return encode_image(_kitti_png(values, name), ".png")
    if suffix == ".pfm":
        return encode_pfm(np.where(np.isfinite(values), values, np.float32(np.inf)))
    values = with_nan(values, name)
    return encode_npy(values) if suffix == ".npy" else encode_npz({"disparity": values}, compressed=True)


def write_pfm(path: PathLike, values: NDArray[np.floating]) -> None:
    """Write [H, W] or [H, W, 3] as a little-endian portable float map without changing the values."""
    write_bytes(path, encode_pfm(values))


def decode_pfm(data: bytes, name: str) -> FloatMap:
    """Decode a portable float map of either byte order; error messages call it `name`.

    Returns:
        [H, W] or [H, W, 3], top row first.
    """
    header = re.match(rb"(PF|Pf)\s+(\d+)\s+(\d+)\s+([-+.\deE]+)[ \t]*\r?\n", data[:200])
    if header is None:
        raise ReadError(f"{name} is not a PFM file: expected a header 'Pf', width, height and scale.")
    channels = 3 if header[1] == b"PF" else 1
    width, height, scales = int(header[2]), int(header[3]), parse_numbers(header[4].decode())
    if len(scales) != 1 or max(width, height) > MAX_SIDE:
        raise ReadError(
            f"{name} is not a PFM file: expected at most {MAX_SIDE} rows and columns, and a scale."
        )
    # Only the sign of the scale matters: Middlebury writes 1/255, but its values are not to be scaled.
    order = "<" if scales[0] < 0 else ">"
    wanted, got = 4 * width * height * channels, len(data) - header.end()
    if got < wanted or wanted == 0:
        raise ReadError(f"{name} is truncated: a {width}×{height} PFM has {wanted} bytes of data, not {got}.")
    values = np.frombuffer(data, f"{order}f4", width * height * channels, header.end())
    shape = (height, width, 3) if channels == 3 else (height, width)
    return values.reshape(shape)[::-1].astype(np.float32)  # rows are stored bottom to top


def encode_pfm(values: NDArray[np.floating]) -> bytes:
    """Encode [H, W] or [H, W, 3] as a little-endian portable float map."""
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] != 3):
        raise InputError(f"A PFM file holds [H, W] or [H, W, 3]; got shape {values.shape}.")
    kind = "PF" if values.ndim == 3 else "Pf"
    header = f"{kind}\n{values.shape[1]} {values.shape[0]}\n-1.0\n"
    return header.encode() + values[::-1].astype("<f4").tobytes()


def _decode_png(stored: AnyImage, name: str, scale: float | None) -> FloatMap:
    stored = one_map(stored, name)
    if scale is None and stored.dtype == np.uint8:
        raise InputError(
            f"{name} is an 8-bit PNG, which does not state its scale; give the scale (Middlebury 2001: 8, "
            "2003: 4, 2005 and 2006: 3)."
        )
    if scale is not None and not 1e-6 <= scale <= 1e6:
        raise InputError(f"The scale of a disparity PNG must be positive; got {scale}.")
    return unscale(stored, scale or KITTI_SCALE)


def _kitti_png(disparity: FloatMap, name: str) -> NDArray[np.uint16]:
    known = disparity[np.isfinite(disparity)]
    if known.size and (known.min() < 0 or np.rint(known.max() * KITTI_SCALE) > LARGEST):
        raise InputError(
            f"{name}: a 16-bit PNG holds disparities from 0 to 255.99 px; this map has {known.min():.2f} to "
            f"{known.max():.2f} px and must be written as .pfm or .npy."
        )
    return scale_to_16_bits(disparity, KITTI_SCALE)
