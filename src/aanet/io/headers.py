"""Width and height of an encoded image, from its header alone; the time is bounded for any content."""

from __future__ import annotations

import re
import struct

from aanet.errors import ReadError
from aanet.io import jpeg

MAX_SIDE = 32767  # pixels, the limit of OpenCV's remap
MAX_PIXELS = 2**28

_PNM_HEADER = 65_536  # bytes, with comments


def check_size(data: bytes, name: str) -> None:
    """Refuse an image whose header is damaged, too large, or announces more than the data can hold."""
    try:
        width, height = image_size(data)
        least_bits = jpeg.least_bits(data) if data.startswith(jpeg.SIGNATURE) else 0
    except (ValueError, IndexError, struct.error) as error:
        raise ReadError(f"{name} is damaged: its header does not state a width and a height.") from error
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE and width * height <= MAX_PIXELS):
        raise ReadError(
            f"{name} has {width}×{height} pixels; an image has 1 to {MAX_SIDE} pixels in each direction and "
            f"at most {MAX_PIXELS / 1e6:.0f} megapixels."
        )
    if 8 * len(data) < least_bits:
        raise ReadError(
            f"{name} is damaged: {len(data)} bytes are too few for a JPEG of {width}×{height} pixels."
        )


def image_size(data: bytes) -> tuple[int, int]:
    """Return width and height; a damaged header raises a ValueError, IndexError or struct.error."""
    if data.startswith(b"\x89PNG"):
        return _pair(">II", data, 16)
    if data.startswith(b"\xff\xd8"):
        height, width = _pair(">HH", data, jpeg.frame_header(data) + 5)
        return width, height
    if data.startswith(b"BM"):
        old = int.from_bytes(data[14:18], "little") == 12
        width, height = _pair("<HH" if old else "<ii", data, 18)
        return width, abs(height)  # negative if the top row comes first
    if data.startswith((b"II", b"MM")):
        return _tiff_size(data)
    if data.startswith(b"RIFF"):
        return _webp_size(data)
    if data.startswith(b"GIF8"):
        return _pair("<HH", data, 6)
    words = re.sub(rb"#[^\n]*", b"", data[:_PNM_HEADER]).split(maxsplit=3)
    if not all(len(word) < 10 for word in words[1:3]):
        raise ValueError("no size in a PNM header")
    return int(words[1]), int(words[2])


def _pair(layout: str, data: bytes, at: int) -> tuple[int, int]:
    first, second = struct.unpack_from(layout, data, at)
    return int(first), int(second)


def _tiff_size(data: bytes) -> tuple[int, int]:
    order = "<" if data.startswith(b"II") else ">"
    (directory,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, directory)
    sides: dict[int, int] = {}
    for index in range(count):
        tag, kind = _pair(f"{order}HH", data, directory + 2 + 12 * index)
        if tag in (256, 257):
            layout = {1: "B", 3: "H", 4: "I"}.get(kind)
            if layout is None:
                raise ValueError("a side of unknown type in a TIFF")
            (sides[tag],) = struct.unpack_from(order + layout, data, directory + 10 + 12 * index)
    if len(sides) < 2:
        raise ValueError("no size in a TIFF")
    return sides[256], sides[257]


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = _pair("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("no size in a WebP")
