"""The structure of JPEG files, without decoding them; the time is linear in the size of any content."""

from __future__ import annotations

import io
import random
import re
import struct

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\xff\xd8\xff"

_SEGMENTS = 10_000
_SCANS = 200  # a decoder goes over the whole image once per scan; encoders write a dozen
_FRAMES = {0xC0, 0xC1, 0xC2, 0xC3, *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)}
_PROGRESSIVE = 0xC2  # the frames up to here are coded with Huffman's codes
_SCAN, _END = 0xDA, 0xD9
_FILLS = re.compile(rb"\xff{1,64}")
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # FF00 is a data byte, FFD0 to FFD7 restart the decoder
_RESTART = re.compile(rb"\xff[\xd0-\xd7]")


def frame_header(data: bytes) -> int:
    """The position of the frame header's marker (SOF); a ValueError or IndexError if there is none."""
    at = 2
    for _ in range(_SEGMENTS):
        fills = _FILLS.match(data, at)
        if fills is None:
            break
        marker = data[fills.end()]
        if marker in _FRAMES:
            return fills.end() - 1
        at = fills.end() + 1
        if marker != 0x01 and not 0xD0 <= marker <= 0xD8:  # those have no payload
            at += int.from_bytes(data[at : at + 2], "big")
    raise ValueError("no frame header in a JPEG")


def least_bits(data: bytes) -> int:
    """The fewest bits of any JPEG of this size.

    A block of 8×8 values takes at least one bit for its mean and, unless the JPEG is progressive, one for
    the end of its other coefficients.
    """
    frame = frame_header(data)
    marker, height, width, count = struct.unpack_from(">xBxxxHHB", data, frame)
    if marker > _PROGRESSIVE:  # lossless or arithmetic coding
        return 0
    factors = [divmod(data[frame + 11 + 3 * index], 16) for index in range(min(count, 4))]
    across, down = (max([1, *(factor[axis] for factor in factors)]) for axis in (0, 1))
    blocks: int = sum(
        -(-width * horizontal // (8 * across)) * -(-height * vertical // (8 * down))
        for horizontal, vertical in factors
    )
    return blocks * (1 if marker == _PROGRESSIVE else 2)


def scans_and_end(data: bytes) -> tuple[list[int], int] | None:
    """The positions of the scans and of the end marker that follows them; None if the file lacks them.

    Thumbnails inside of segments, and whatever follows the image in its file, do not count.
    """
    scans: list[int] = []
    at = 2
    for _ in range(_SEGMENTS):
        found = _MARKER.search(data, at)
        if found is None or len(scans) > _SCANS:
            break
        marker, at = data[found.end() - 1], found.end()
        if marker == _END:
            return (scans, found.start()) if _all_coefficients(data, scans) else None
        if marker == _SCAN:
            scans.append(found.start())
        if marker not in (0x01, 0xD8):
            at += int.from_bytes(data[at : at + 2], "big")
    return None


def _all_coefficients(data: bytes, scans: list[int]) -> bool:
    """Whether the scans give every coefficient of every component to its last bit.

    A progressive JPEG that was cut between two of its scans has coefficients without their last bits.
    """
    frame = frame_header(data)
    components = {data[frame + 10 + 3 * index] for index in range(data[frame + 9])}
    if data[frame + 1] != _PROGRESSIVE:
        return bool(scans)
    given: dict[int, set[int]] = {}
    for scan in scans:
        count = min(data[scan + 4], 4)
        first, last, bits = data[scan + 5 + 2 * count : scan + 8 + 2 * count]
        if not bits & 15:
            for index in range(count):
                given.setdefault(data[scan + 5 + 2 * index], set()).update(range(first, last + 1))
    return all(given.get(component, set()) >= set(range(64)) for component in components)


def is_truncated(data: bytes, image: NDArray[np.generic]) -> bool:
    """Whether a file has an end marker, but ends before its last block; decoders fill in what is missing.

    A complete image does not change if more data follows its last block; in a truncated one the data takes
    the place of what is missing.  Data that is missing from the last block alone is not noticed.

    Args:
        data: The file.
        image: What OpenCV decodes from it.  Blocks that are missing from a single scan are gray, which spares
            most other images the second decoding.
    """
    frame, found = frame_header(data), scans_and_end(data)
    if found is None or data[frame + 1] > _PROGRESSIVE:  # arithmetic coding may leave out zeros at the end
        return False
    scans, end = found
    corner = image[-1, -1].ravel().astype(float)
    luma = float(corner @ (0.114, 0.587, 0.299)) if corner.size == 3 else float(corner[0])
    if len(scans) == 1 and data[frame + 9] in (1, 3) and abs(luma - 128) > 2:
        return False
    restarts = len(_RESTART.findall(data, scans[-1], end))
    more = bytes(random.Random(0).choices(range(255), k=512))
    pieces = [more + bytes((0xFF, 0xD0 + (restarts + index) % 8)) for index in range(8)]
    pixels = _pixels(data)
    return pixels is not None and pixels != _pixels(data[:end] + b"".join(pieces) + b"\xff\xd9")


def _pixels(data: bytes) -> bytes | None:
    """Decode with Pillow, because OpenCV prints a warning about data after the last block."""
    from PIL.JpegImagePlugin import JpegImageFile  # few images need it

    try:
        return JpegImageFile(io.BytesIO(data)).tobytes()
    except (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, struct.error, MemoryError):
        return None
