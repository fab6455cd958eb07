"""The formats that disparity and depth files share: 16-bit PNG and NumPy."""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aanet.errors import AanetError, InputError, ReadError
from aanet.io.files import MEGABYTE
from aanet.io.headers import MAX_SIDE
from aanet.io.images import MAX_PIXEL_BYTES, AnyImage, PathLike
from aanet.typing import FloatMap

LARGEST = 65535  # the largest 16-bit value

_NPY_HEADER = 10_000  # bytes, the limit of NumPy
_MEMBERS = 1000  # of an NPZ file
_NPY_FIELDS = (
    r"'descr': ?'([^']{1,20})'",
    r"'fortran_order': ?(True|False)",
    r"'shape': ?\(([\d ,L]{0,60})\)",
)
_NUMBERS = r"[<>|=]?(?:[iu][1248]|f[248])"
_SMALL_ARRAYS, _SMALL_BYTES = 200, 20_000  # number of arrays, and size of each, for `decode_small_arrays`
# What zipfile raises for damaged archives, other compressions and passwords.
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError),
    *(NotImplementedError, KeyError, IndexError, AttributeError, TypeError),
)


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
    one_map_shape(values.shape, name)
    return values


def one_map_shape(shape: tuple[int, ...], name: str) -> None:
    """Raise an error if the shape is not that of a map [H, W]."""
    if len(shape) == 3 and shape[2] in (3, 4):
        raise InputError(f"{name} has {shape[2]} channels, like a color image; expected one.")
    if len(shape) != 2 or not all(1 <= side <= MAX_SIDE for side in shape):
        raise InputError(
            f"{name} has shape {str(shape)[:40]}; expected [H, W], each from 1 to {MAX_SIDE} pixels."
        )


def with_nan(values: AnyImage, name: str) -> FloatMap:
    """Convert a map [H, W] of numbers to float32, with NaN where it is not finite."""
    values = one_map(values, name)
    if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
        raise InputError(f"{name} holds values of type {values.dtype}; expected numbers.")
    with np.errstate(over="ignore"):  # what float32 cannot hold is unknown
        floats = values.astype(np.float32)
    return np.where(np.isfinite(floats), floats, np.float32(np.nan))


def decode_numpy(data: bytes, name: str, key: str) -> AnyImage:
    """Decode a map [H, W] of numbers from an NPY file, or from the array `key` of an NPZ file."""
    return _decode_npy(_member(data, name, f"{key}.npy") if data.startswith(b"PK") else data, name)


def _decode_npy(data: bytes, name: str) -> AnyImage:
    """Decode an NPY file without NumPy's reader, which evaluates the header and allocates what it states."""
    return _values(data, name, _parse_map_header(data, name))


def decode_small_arrays(data: bytes, name: str) -> dict[str, NDArray[np.float64] | str]:
    """Decode the arrays of numbers, and the strings, of an NPZ file that are small, such as matrices.

    What is large or has another type is "?", which is no number.
    """
    arrays: dict[str, NDArray[np.float64] | str] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist()[:_SMALL_ARRAYS]:
                with archive.open(member) as file:
                    arrays[member.removesuffix(".npy")] = _decode_small(file.read(_SMALL_BYTES + 1), name)
    except ReadError:
        raise
    except (*_ZIP_ERRORS, MemoryError) as error:
        raise ReadError(f"{name} is damaged or not a NumPy file.") from error
    return arrays


def _decode_small(data: bytes, name: str) -> NDArray[np.float64] | str:
    if len(data) > _SMALL_BYTES:
        return "?"
    header = _parse_header(data, name)
    if re.fullmatch(r"[<>|=]?U\d{1,3}", header.kind) and not header.sides:
        return str(_values(data, name, header)[()])
    if not re.fullmatch(_NUMBERS, header.kind) or max(header.sides, default=0) > _SMALL_BYTES:
        return "?"
    return _values(data, name, header).astype(np.float64)


class _Header(NamedTuple):
    """The header of an NPY file."""

    kind: str  # as in `np.dtype(kind)`
    order: Literal["C", "F"]
    sides: tuple[int, ...]
    end: int  # where the values start

    @property
    def bytes(self) -> int:
        """The size of the values."""
        return math.prod(self.sides) * np.dtype(self.kind).itemsize


def _parse_map_header(data: bytes, name: str) -> _Header:
    """Parse the header of a map [H, W] of numbers."""
    header = _parse_header(data, name)
    if not re.fullmatch(_NUMBERS, header.kind):
        raise ReadError(f"{name} holds values of type {header.kind!r}; expected numbers.")
    one_map_shape(header.sides, name)
    return header


def _parse_header(data: bytes, name: str) -> _Header:
    if not data.startswith(b"\x93NUMPY") or len(data) < 12:
        raise ReadError(f"{name} is damaged or not a NumPy file.")
    start = 10 if data[6] == 1 else 12
    end = start + int.from_bytes(data[8:start], "little")
    header = data[start : min(end, start + _NPY_HEADER)].decode("latin-1")
    found = [re.search(pattern, header) for pattern in _NPY_FIELDS]
    kind, order, shape = (match[1] if match else "" for match in found)
    if not kind or not order:
        raise ReadError(f"{name} is damaged or not a NumPy file: its header is not that of an array.")
    sides = tuple(int(side) for side in re.findall(r"\d+", shape))
    return _Header(kind, "F" if order == "True" else "C", sides, end)


def _values(data: bytes, name: str, header: _Header) -> AnyImage:
    got = max(0, len(data) - header.end)
    if got < header.bytes:
        raise ReadError(
            f"{name} is truncated: its array has {header.bytes} bytes, and the file {got} of them."
        )
    values = np.frombuffer(data, np.dtype(header.kind), math.prod(header.sides), header.end)
    return values.reshape(header.sides, order=header.order)


def _announced(start: bytes, name: str) -> int:
    """Return the size of an NPY file in an archive, from its start: more is not decompressed."""
    header = _parse_map_header(start, name)
    size = header.end + header.bytes
    if size > MAX_PIXEL_BYTES:
        most = MAX_PIXEL_BYTES // MEGABYTE
        raise ReadError(f"{name} is too large: its array may have at most {most} MB.")
    return size


def _member(data: bytes, name: str, member: str) -> bytes:
    """Read one file of a ZIP archive, at most as much as a map needs."""
    if data.count(b"PK\x01\x02") > _MEMBERS:  # the list of files alone could fill the memory
        raise ReadError(f"{name} holds more than {_MEMBERS} arrays.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [known.removesuffix(".npy") for known in archive.namelist()]
            if member not in archive.namelist():
                held = ", ".join(repr(known)[1:31].rstrip("'") for known in names[:5]) or "nothing"
                raise ReadError(f"{name} holds {held}; expected {member.removesuffix('.npy')!r}.")
            with archive.open(member) as file:
                start = file.read(_NPY_HEADER)
                # One byte more than announced, because the checksum is compared at the end only.
                content = start + file.read(max(1, _announced(start, name) + 1 - len(start)))
    except AanetError:
        raise
    except (*_ZIP_ERRORS, MemoryError) as error:
        raise ReadError(f"{name} is damaged or not a NumPy file.") from error
    return content


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
