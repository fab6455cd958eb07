"""Truncated JPEG files: decoders fill in what is missing, so that it must be found here."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest

from aanet.errors import ReadError
from aanet.io.images import decode_image

END = b"\xff\xd9"
OPTIONS: dict[str, dict[str, Any]] = {
    "baseline": {},
    "full color": {"quality": 95, "subsampling": 0},
    "progressive": {"progressive": True},
    "restarts": {"restart_marker_blocks": 3},
    "progressive with restarts": {"progressive": True, "restart_marker_blocks": 5},
}


def encode(image: np.ndarray, options: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    PIL.Image.fromarray(image).save(file, "JPEG", **options)
    return file.getvalue()


def noise(height: int, width: int, channels: int) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return cv2.GaussianBlur(values, (0, 0), 2)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_cut_with_an_end_marker_is_refused(options: dict[str, Any], channels: int) -> None:
    whole = encode(noise(97, 113, channels), options)
    assert decode_image(whole, "a").shape[:2] == (97, 113)
    scan = whole.find(b"\xff\xda") + 14
    for end in range(scan, len(whole) - 60, 7):
        with pytest.raises(ReadError, match="a is damaged: the image data is truncated or corrupt"):
            decode_image(whole[: end - (whole[end - 1] == 0xFF)] + END, "a")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_gray_corner_is_no_damage(options: dict[str, Any], channels: int) -> None:
    """What is missing becomes gray, but not all that is gray is missing."""
    image = noise(97, 113, channels)
    image[40:] = 128
    whole = encode(np.squeeze(image), options)
    assert (decode_image(whole, "a")[-1, -1] == 128).all()
    assert decode_image(whole + b"appended" + whole + END, "a").shape[:2] == (97, 113)


def test_a_thumbnail_does_not_end_the_image() -> None:
    whole, small = encode(noise(64, 64, 3), {}), encode(noise(16, 16, 3), {})
    segment = b"\xff\xe1" + (len(small) + 2).to_bytes(2, "big") + small
    assert decode_image(whole[:2] + segment + whole[2:], "a").shape[:2] == (64, 64)
    with pytest.raises(ReadError, match="truncated"):
        decode_image(whole[:2] + segment + whole[2:-2], "a")


def test_the_number_of_scans_is_bounded() -> None:
    """A decoder goes over the whole image for every scan, which takes a dozen bytes."""
    whole = encode(noise(64, 64, 1), {"progressive": True})
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x00\x10"  # the last bit of the means, again and again
    with pytest.raises(ReadError, match="truncated or corrupt"):
        decode_image(whole[:-2] + scan * 1000 + END, "a")
