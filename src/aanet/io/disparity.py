"""Disparity and depth files: what is written is read back exactly.

Unknown values are NaN in memory.  On disk each format has its own habit (`docs/conventions.md`).
"""

from __future__ import annotations

import contextlib
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import AanetError
from aanet.io.atomic import atomic_path
from aanet.io.images import AnyImage, PathLike, decode_image, encode_image, read_bytes
from aanet.typing import FloatMap

DISPARITY_SUFFIXES = (".png", ".pfm", ".npy", ".npz")
DEPTH_SUFFIXES = (".png", ".npy", ".exr")

KITTI_SCALE = 256.0  # KITTI's 16-bit PNG stores 256 times the disparity
MILLIMETERS = 1000.0  # depth PNGs store whole millimeters
_LARGEST = 65535  # of 16 bits


def read_disparity(path: PathLike, scale: float | None = None) -> FloatMap:
    """The disparity in pixels, [H, W] float32, NaN where unknown.

    Args:
        path: A `.png`, `.pfm`, `.npy` or `.npz` file.
        scale: What a PNG stores for one pixel of disparity.  16-bit files default to KITTI's 256; 8-bit
            files say nothing, so it must be given (Middlebury: 8 in 2001, 4 in 2003, 3 for the third-size
            maps of 2005 and 2006).
    """
    suffix = _known_suffix(path, DISPARITY_SUFFIXES, "disparity")
    data, name = read_bytes(path, "a disparity map"), str(path)
    if suffix == ".png":
        return _read_png_disparity(decode_image(data, name), name, scale)
    if suffix == ".pfm":
        return _with_nan(decode_pfm(data, name), name)
    return _with_nan(_load_numpy(data, name, key="disparity"), name)


def write_disparity(path: PathLike, disparity: NDArray[np.floating]) -> None:
    """Write a disparity map in pixels; not finite means unknown.  The suffix chooses the format.

    `.png` rounds to 1/256 px and holds 0 to 255.99 px; the other formats keep float32 as it is.
    """
    suffix = _known_suffix(path, DISPARITY_SUFFIXES, "disparity")
    disparity = _one_map(disparity, "disparity map to write").astype(np.float32)
    if suffix == ".png":
        encoded = encode_image(_kitti_png(disparity, str(path)), ".png")
    elif suffix == ".pfm":
        encoded = encode_pfm(np.where(np.isfinite(disparity), disparity, np.float32(np.inf)))
    else:
        encoded = _dump_numpy(_with_nan(disparity, str(path)), suffix, key="disparity")
    _write_bytes(path, encoded)


def read_depth(path: PathLike) -> FloatMap:
    """The depth in meters, [H, W] float32, NaN where unknown, from a millimeter PNG, NPY or EXR."""
    suffix = _known_suffix(path, DEPTH_SUFFIXES, "depth")
    data, name = read_bytes(path, "a depth map"), str(path)
    if suffix == ".npy":
        return _with_nan(_load_numpy(data, name, key="depth"), name)
    if suffix == ".exr":
        with _needs_exr():
            return _with_nan(decode_image(data, name), name)
    stored = _one_map(decode_image(data, name), name)
    if stored.dtype != np.uint16:
        raise AanetError(f"{name} has 8 bits a pixel; a depth PNG has 16 and holds millimeters.")
    return _unscale(stored, MILLIMETERS)


def write_depth(path: PathLike, depth: NDArray[np.floating]) -> None:
    """Write a depth map in meters; not finite or not positive means unknown.

    `.png` rounds to millimeters, and what lies beyond its 65.535 m becomes unknown, as in ROS; `.npy` and
    `.exr` keep float32 as it is.
    """
    suffix = _known_suffix(path, DEPTH_SUFFIXES, "depth")
    depth = _one_map(depth, "depth map to write").astype(np.float32)
    depth = np.where(np.isfinite(depth) & (depth > 0), depth, np.float32(np.nan))
    if suffix == ".npy":
        encoded = _dump_numpy(depth, suffix, key="depth")
    elif suffix == ".exr":
        with _needs_exr():
            encoded = cv2.imencode(".exr", depth)[1].tobytes()
    else:
        near = np.where(np.rint(depth * MILLIMETERS) <= _LARGEST, depth, np.float32(np.nan))
        encoded = encode_image(_scale_to_16_bits(near, MILLIMETERS), ".png")
    _write_bytes(path, encoded)


def read_pfm(path: PathLike) -> FloatMap:
    """A portable float map as stored, [H, W] or [H, W, 3], top row first."""
    return decode_pfm(read_bytes(path, "a PFM file"), str(path))


def write_pfm(path: PathLike, values: NDArray[np.floating]) -> None:
    """Write [H, W] or [H, W, 3] as a little-endian portable float map, values unchanged."""
    _write_bytes(path, encode_pfm(values))


def decode_pfm(data: bytes, name: str) -> FloatMap:
    """The values of a portable float map of either byte order; `name` is what messages call it."""
    header = re.match(rb"(PF|Pf)\s+(\d+)\s+(\d+)\s+([-+.\deE]+)[ \t]*\r?\n", data[:200])
    if header is None:
        raise AanetError(f"{name} is not a PFM file: expected a header 'Pf', width, height and scale.")
    channels = 3 if header[1] == b"PF" else 1
    width, height, scale = int(header[2]), int(header[3]), float(header[4])
    # Only the sign of the scale counts: Middlebury writes 1/255 there and means the values as they are.
    order = "<" if scale < 0 else ">"
    wanted, got = 4 * width * height * channels, len(data) - header.end()
    if got < wanted or wanted == 0:
        raise AanetError(f"{name} is cut off: {width}×{height} PFM needs {wanted} bytes of data, has {got}.")
    values = np.frombuffer(data, f"{order}f4", width * height * channels, header.end())
    shape = (height, width, 3) if channels == 3 else (height, width)
    return values.reshape(shape)[::-1].astype(np.float32)  # rows are stored bottom to top


def encode_pfm(values: NDArray[np.floating]) -> bytes:
    """The bytes of a little-endian portable float map."""
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] != 3):
        raise AanetError(f"A PFM file holds [H, W] or [H, W, 3]; got shape {values.shape}.")
    kind = "PF" if values.ndim == 3 else "Pf"
    header = f"{kind}\n{values.shape[1]} {values.shape[0]}\n-1.0\n"
    return header.encode() + values[::-1].astype("<f4").tobytes()


def _known_suffix(path: PathLike, known: tuple[str, ...], kind: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise AanetError(f"{path}: a {kind} file ends in {', '.join(known)}; got {suffix or 'no suffix'!r}.")
    return suffix


def _read_png_disparity(stored: AnyImage, name: str, scale: float | None) -> FloatMap:
    stored = _one_map(stored, name)
    if scale is None and stored.dtype == np.uint8:
        raise AanetError(
            f"{name} has 8 bits a pixel and does not say how much one pixel of disparity is; "
            "give the scale (Middlebury 2001: 8, 2003: 4, 2005 and 2006: 3)."
        )
    if scale is not None and scale <= 0:
        raise AanetError(f"The scale of a disparity PNG must be positive; got {scale}.")
    return _unscale(stored, scale or KITTI_SCALE)


def _kitti_png(disparity: FloatMap, name: str) -> NDArray[np.uint16]:
    known = disparity[np.isfinite(disparity)]
    if known.size and (known.min() < 0 or np.rint(known.max() * KITTI_SCALE) > _LARGEST):
        raise AanetError(
            f"{name}: a 16-bit PNG holds disparities from 0 to 255.99 px; this map has {known.min():.2f} to "
            f"{known.max():.2f} (write .pfm or .npy instead)."
        )
    return _scale_to_16_bits(disparity, KITTI_SCALE)


def _scale_to_16_bits(values: FloatMap, scale: float) -> NDArray[np.uint16]:
    """Whole numbers with 0 for unknown; a known value that rounds to 0 becomes 1, as in KITTI's devkit."""
    known = np.isfinite(values)
    whole = np.rint(np.where(known, values, 0) * scale)
    return np.where(known, np.maximum(whole, 1), 0).astype(np.uint16)


def _unscale(stored: AnyImage, scale: float) -> FloatMap:
    values = stored.astype(np.float64) / scale
    return np.where(values > 0, values, np.nan).astype(np.float32)


def _one_map(values: AnyImage, name: str) -> AnyImage:
    if values.ndim == 3 and values.shape[2] in (3, 4):
        raise AanetError(f"{name} has {values.shape[2]} channels, like a colored picture; expected one.")
    if values.ndim != 2 or values.size == 0:
        raise AanetError(f"{name} has shape {values.shape}; expected [H, W].")
    return values


def _with_nan(values: AnyImage, name: str) -> FloatMap:
    values = _one_map(values, name)
    if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
        raise AanetError(f"{name} holds values of type {values.dtype}; expected numbers.")
    floats = values.astype(np.float32)
    return np.where(np.isfinite(floats), floats, np.float32(np.nan))


def _load_numpy(data: bytes, name: str, key: str) -> AnyImage:
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        if key not in loaded:
            raise AanetError(f"{name} holds {', '.join(loaded.files) or 'nothing'}; expected {key!r}.")
        array: AnyImage = loaded[key]
    except AanetError:
        raise
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise AanetError(f"{name} is not a readable NumPy file: it is damaged or of another kind.") from error
    return array


def _dump_numpy(values: FloatMap, suffix: str, key: str) -> bytes:
    buffer = io.BytesIO()
    if suffix == ".npz":
        np.savez_compressed(buffer, allow_pickle=False, **{key: values})
    else:
        np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


@contextlib.contextmanager
def _needs_exr() -> Iterator[None]:
    try:
        yield
    except (cv2.error, AanetError) as error:
        raise AanetError(
            "This OpenCV cannot read or write EXR (it was built without it, or needs "
            "OPENCV_IO_ENABLE_OPENEXR=1 in the environment before Python starts); use .npy instead."
        ) from error


def _write_bytes(path: PathLike, data: bytes) -> None:
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
