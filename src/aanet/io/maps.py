"""What disparity and depth files have in common: 16-bit PNG and NumPy, and how unknown values are stored."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError, ReadError
from aanet.io.images import AnyImage, PathLike
from aanet.typing import FloatMap

LARGEST = 65535  # of 16 bits


def known_suffix(path: PathLike, known: tuple[str, ...], kind: str) -> str:
    """The suffix of a path in lower case, if it is one of those known."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise InputError(f"{path}: a {kind} file ends in {', '.join(known)}; got {suffix or 'no suffix'!r}.")
    return suffix


def scale_to_16_bits(values: FloatMap, scale: float) -> NDArray[np.uint16]:
    """Whole numbers with 0 for unknown; a known value that rounds to 0 becomes 1, as in KITTI's devkit."""
    known = np.isfinite(values)
    whole = np.rint(np.where(known, values, 0) * scale)
    return np.where(known, np.maximum(whole, 1), 0).astype(np.uint16)


def unscale(stored: AnyImage, scale: float) -> FloatMap:
    """The values of whole numbers, NaN where they are 0."""
    values = stored.astype(np.float64) / scale
    return np.where(values > 0, values, np.nan).astype(np.float32)


def one_map(values: AnyImage, name: str) -> AnyImage:
    """The values, if they are a map [H, W]."""
    if values.ndim == 3 and values.shape[2] in (3, 4):
        raise InputError(f"{name} has {values.shape[2]} channels, like a colored picture; expected one.")
    if values.ndim != 2 or values.size == 0:
        raise InputError(f"{name} has shape {values.shape}; expected [H, W].")
    return values


def with_nan(values: AnyImage, name: str) -> FloatMap:
    """A map of any numbers as float32, NaN where they are not finite."""
    values = one_map(values, name)
    if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
        raise InputError(f"{name} holds values of type {values.dtype}; expected numbers.")
    floats = values.astype(np.float32)
    return np.where(np.isfinite(floats), floats, np.float32(np.nan))


def decode_numpy(data: bytes, name: str, key: str) -> AnyImage:
    """The array of an NPY file, or the one called `key` of an NPZ file."""
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        if key in loaded:
            array: AnyImage = loaded[key]
            return array
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        message = f"{name} is not a readable NumPy file: it is damaged or of another kind."
        raise ReadError(message) from error
    raise ReadError(f"{name} holds {', '.join(loaded.files) or 'nothing'}; expected {key!r}.")


def encode_npy(values: NDArray[np.generic]) -> bytes:
    """The bytes of an NPY file."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def encode_npz(arrays: dict[str, NDArray[np.generic]], compressed: bool) -> bytes:
    """The bytes of an NPZ file."""
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
