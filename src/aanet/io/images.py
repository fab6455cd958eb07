"""Read and write images."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError, ReadError
from aanet.io import jpeg
from aanet.io.atomic import write_bytes
from aanet.io.files import MEGABYTE, read_bytes
from aanet.io.headers import check_size

AnyImage = NDArray[
    np.integer[Any] | np.floating[Any]
]  # [H, W], [H, W, 3] or [H, W, 4]; uint8, uint16 or float in 0..1
PathLike = str | os.PathLike[str]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
MAX_PIXEL_BYTES = 1000 * MEGABYTE  # of a file with an image or a map
_DEEP_SUFFIXES = (".png", ".tif", ".tiff", ".ppm", ".pgm")  # formats with 16 bits per channel

_PNG_CHUNKS = 100_000
_PNG = b"\x89PNG\r\n\x1a\n"
_SIGNATURES = (
    *(_PNG, jpeg.SIGNATURE, b"BM", b"II*\x00", b"MM\x00*", b"RIFF", b"GIF8"),
    *(f"P{digit}{space}".encode() for digit in "123456" for space in " \n\r\t"),
)


def read_image(path: PathLike) -> AnyImage:
    """Read an image as it is stored: [H, W], [H, W, 3] or [H, W, 4] in RGB(A) order, 8 or 16 bits."""
    return decode_image(read_bytes(path, "an image", MAX_PIXEL_BYTES), str(path))


def load_image(source: AnyImage | PathLike) -> AnyImage:
    """Return the given image, or read it if `source` is a path."""
    if isinstance(source, str | os.PathLike):
        return read_image(source)
    image = np.asarray(source)
    if image.ndim not in (2, 3) or image.size == 0 or not np.issubdtype(image.dtype, np.number):
        what = type(source).__name__ if image.ndim == 0 else f"{image.dtype} {image.shape}"
        raise InputError(f"Expected an image of shape [H, W] or [H, W, 3], or the path of one; got {what}.")
    return image


def decode_image(data: bytes, name: str) -> AnyImage:
    """Decode the bytes of an image file, as `read_image` does; error messages call it `name`."""
    if not data.startswith(_SIGNATURES):
        raise ReadError(f"{name} is not a supported image: its content is {_describe(data)}.")
    check_size(data, name)
    damaged = ReadError(f"{name} is damaged: the image data is truncated or corrupt ({len(data)} bytes).")
    if not _is_complete(data):
        raise damaged
    log_level = cv2.utils.logging.getLogLevel()
    try:
        cv2.utils.logging.setLogLevel(0)  # errors of this package replace the decoder's own messages
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except (cv2.error, MemoryError):
        image = None
    finally:
        cv2.utils.logging.setLogLevel(log_level)
    if image is None:
        raise ReadError(f"{name} is damaged, or OpenCV cannot decode its format ({len(data)} bytes).")
    if data.startswith(jpeg.SIGNATURE) and jpeg.is_truncated(data, image):
        raise damaged
    return _swap_red_and_blue(image)


def as_rgb8(image: AnyImage) -> NDArray[np.uint8]:
    """Convert any image to uint8 RGB [H, W, 3]: gray is repeated, alpha dropped, values are rounded."""
    rgb = _three_channels(image)
    if rgb.dtype == np.uint8:
        return rgb.astype(np.uint8, copy=False)
    return (_unit_range(rgb) * 255 + 0.5).astype(np.uint8)


def as_rgb_float(image: AnyImage) -> NDArray[np.float32]:
    """Convert any image to float32 RGB [H, W, 3] in 0..1: gray is repeated, alpha dropped."""
    return _unit_range(_three_channels(image))


def encode_image(image: AnyImage, suffix: str) -> bytes:
    """Encode a gray, RGB or RGBA image (uint8 or uint16) in the format of `suffix`."""
    suffix = suffix.lower()
    if suffix not in IMAGE_SUFFIXES:
        raise InputError(f"Cannot write images as {suffix!r}; use one of {', '.join(IMAGE_SUFFIXES)}.")
    if image.dtype not in (np.uint8, np.uint16) or image.ndim not in (2, 3):
        raise InputError(f"Expected a uint8 or uint16 image to write; got {image.dtype} {image.shape}.")
    if image.dtype == np.uint16 and suffix not in _DEEP_SUFFIXES:
        raise InputError(f"{suffix} has 8 bits per channel; write 16-bit images as .png or .tif.")
    options = [cv2.IMWRITE_JPEG_QUALITY, 95] if suffix in (".jpg", ".jpeg") else []
    try:
        done, encoded = cv2.imencode(suffix, _swap_red_and_blue(image), options)
    except cv2.error as error:
        raise InputError(f"OpenCV cannot write a {image.shape} image as {suffix}: {error.err}.") from error
    if not done:
        raise InputError(f"OpenCV cannot write a {image.shape} image as {suffix}.")
    return encoded.tobytes()


def write_image(path: PathLike, image: AnyImage) -> None:
    """Write a gray, RGB or RGBA image (uint8 or uint16); the suffix chooses the format."""
    # Encoded in memory, because OpenCV's own writer does not report a full disk.
    write_bytes(path, encode_image(image, Path(path).suffix))


def _swap_red_and_blue(image: AnyImage) -> AnyImage:
    """Convert between RGB(A) and OpenCV's BGR(A); gray images stay as they are."""
    if image.ndim == 2:
        return image
    if image.shape[2] == 1:
        return image[:, :, 0]
    order = [2, 1, 0, 3][: image.shape[2]]
    return np.ascontiguousarray(image[:, :, order])


def _three_channels(image: AnyImage) -> AnyImage:
    if image.ndim == 2:
        image = image[:, :, None]
    if image.ndim != 3 or image.shape[2] not in (1, 3, 4) or 0 in image.shape:
        raise InputError(f"Expected an image of shape [H, W], [H, W, 3] or [H, W, 4]; got {image.shape}.")
    if image.shape[2] == 1:
        return np.repeat(image, 3, axis=2)
    return image[:, :, :3]


def _unit_range(image: AnyImage) -> NDArray[np.float32]:
    if image.dtype in (np.uint8, np.uint16):
        largest = np.float32(255 if image.dtype == np.uint8 else 65535)
        unit: NDArray[np.float32] = np.divide(image, largest, dtype=np.float32)
        return unit
    if not np.issubdtype(image.dtype, np.floating):
        raise InputError(f"Expected an image of type uint8, uint16 or float; got {image.dtype}.")
    floats = image.astype(np.float32)
    low, high = float(floats.min()), float(floats.max())
    # Interpolation may overshoot a little; floats in 0..255 are a common mistake.
    if not (low >= -0.1 and high <= 1.1):
        raise InputError(f"Expected a float image with values in 0..1; got {low:.4g} to {high:.4g}.")
    return np.clip(floats, np.float32(0), np.float32(1))


def _describe(data: bytes) -> str:
    start = data[:400]
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start):
        return f"text ({start[:24].decode().split(chr(10))[0]!r} …)"
    return f"of an unknown format (first bytes {start[:4].hex(' ')})"


def _is_complete(data: bytes) -> bool:
    """Whether a PNG or JPEG goes on to its end marker; some versions of OpenCV decode truncated files."""
    if data.startswith(_PNG):
        return _png_is_complete(data)
    if data.startswith(jpeg.SIGNATURE):
        try:
            return jpeg.scans_and_end(data) is not None
        except (ValueError, IndexError):
            return False
    return True


def _png_is_complete(data: bytes) -> bool:
    """Check the chunks (length, type, payload, checksum) up to IEND."""
    at = len(_PNG)
    for _ in range(_PNG_CHUNKS):
        if at + 12 > len(data):
            break
        length = int.from_bytes(data[at : at + 4], "big")
        body = memoryview(data)[at + 4 : at + 8 + length]
        checksum = data[at + 8 + length : at + 12 + length]
        if len(checksum) < 4 or zlib.crc32(body) != int.from_bytes(checksum, "big"):
            return False
        if bytes(body[:4]) == b"IEND":
            return True
        at += 12 + length
    return False
