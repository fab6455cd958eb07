"""A result in a few hundred kilobytes, for a page that shows several of them per second."""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

import cv2
import numpy as np

from aanet.errors import InputError
from aanet.inference.save_options import SaveOptions
from aanet.outputs import OUTPUTS, Result, encode
from aanet.typing import FloatMap

_JPEG_QUALITY = 85
_FINEST = 8  # the step of the disparities is 2⁻⁸ pixels, unless they are larger than 16 bits can count
_COMPRESSION = 1  # the fastest


class View(NamedTuple):
    """What the page draws.

    Attributes:
        step: Pixels of disparity per unit.
        left: The left image as a JPEG.
        maps: Compressed with zlib: the low bytes of all disparities, their high bytes, and the confidence in
            255ths.  The 16 bits of a disparity are its units plus one, 0 where it is unknown.  All are stored
            as differences from the value before, row after row.
    """

    step: float
    left: bytes
    maps: bytes


def encode_view(result: Result) -> View:
    """Encode a result for the page."""
    units, step = _as_units(result.disparity)
    confidence = np.rint(result.confidence * 255).astype(np.uint8)
    low, high = (_differences(units) >> shift & 255 for shift in (0, 8))
    planes = [low.astype(np.uint8), high.astype(np.uint8), _differences(confidence)]
    maps = zlib.compress(b"".join(plane.tobytes() for plane in planes), _COMPRESSION)
    quality = [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
    _, left = cv2.imencode(".jpg", cv2.cvtColor(result.left, cv2.COLOR_RGB2BGR), quality)
    return View(step, left.tobytes(), maps)


def _as_units(disparity: FloatMap) -> tuple[np.ndarray, float]:
    known = np.isfinite(disparity) & (disparity >= 0)
    largest = float(disparity.max(initial=0.0, where=known))
    step = 2.0 ** max(-_FINEST, math.ceil(math.log2(max(largest, 1e-6) / 65534)))
    units = np.rint(np.where(known, disparity, 0) / step) + 1
    return np.where(known, units, 0).astype(np.uint16), step


def _differences(values: np.ndarray) -> np.ndarray:
    """Differences that wrap around; almost all are small, so that they compress well."""
    flat = values.ravel()
    return np.diff(flat, prepend=flat[:1] * 0).astype(values.dtype)


def every_output(result: Result, options: SaveOptions) -> dict[str, bytes]:
    """All files that a result can be saved as, by their names."""
    files: dict[str, bytes] = {}
    for name, output in OUTPUTS.items():
        if (output.needs == "camera" and result.camera is None) or (
            output.needs == "check" and result.occlusion is None
        ):
            continue
        for kind in output.types:
            try:
                files[(output.stem or name) + kind.suffix] = encode(result, name + kind.suffix, options)
                break
            except InputError:  # a value that does not fit this format, but fits another
                continue
    return files
