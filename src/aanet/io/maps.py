"""The formats that disparity and depth files share: 16-bit PNG and NumPy."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError, ReadError
from aanet.io.images import AnyImage, PathLike
from aanet.typing import FloatMap

LARGEST = 65535  # the largest 16-bit value


def known_suffix(path: PathLike, known: tuple[str, ...], kind: str) -> str:
    """Return the suffix of a path in lower case, or raise an error if it is not one of `known`."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise InputError(f"{path}: a {kind} file ends in {', '.join(known)}; got {suffix or 'no suffix'!r}.")
    return suffix


def scale_to_16_bits(values: FloatMap, scale: float) -> NDArray[np.uint16]:
    """Scale and round; unknown values become 0, known ones at least 1, as in KITTI's devkit."""
    known = np.isfinite(values)
    whole = np.rint(np.where(known, values, 0) * scale)
    return np.where(known, np.maximum(whole, 1), 0).astype(np.uint16)


def unscale(stored: AnyImage, scale: float) -> FloatMap:
    """Undo `scale_to_16_bits`: 0 becomes NaN."""
    values = stored.astype(np.float64) / scale
    return np.where(values > 0, values, np.nan).astype(np.float32)


def one_map(values: AnyImage, name: str) -> AnyImage:
    """Return the values, or raise an error if they are not a map [H, W]."""
    if values.ndim == 3 and values.shape[2] in (3, 4):
        raise InputError(f"{name} has {values.shape[2]} channels, like a color image; expected one.")
    if values.ndim != 2 or values.size == 0:
        raise InputError(f"{name} has shape {values.shape}; expected [H, W].")
    return values


def with_nan(values: AnyImage, name: str) -> FloatMap:
    """Convert a map [H, W] of numbers to float32, with NaN where it is not finite."""
    values = one_map(values, name)
    if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
        raise InputError(f"{name} holds values of type {values.dtype}; expected numbers.")
    floats = values.astype(np.float32)
    return np.where(np.isfinite(floats), floats, np.float32(np.nan))


def decode_numpy(data: bytes, name: str, key: str) -> AnyImage:
    """Decode an NPY file, or the array `key` of an NPZ file."""
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        if key in loaded:
            array: AnyImage = loaded[key]
            return array
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        message = f"{name} is damaged or not a NumPy file."
        raise ReadError(message) from error
    raise ReadError(f"{name} holds {', '.join(loaded.files) or 'nothing'}; expected {key!r}.")


def encode_npy(values: NDArray[np.generic]) -> bytes:
    """Encode an array as an NPY file."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def encode_npz(arrays: dict[str, NDArray[np.generic]], compressed: bool) -> bytes:
    """Encode arrays as an NPZ file."""
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
