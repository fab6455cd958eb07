from __future__ import annotations

import errno
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.io.headers import image_size
from aanet.io.images import (
    IMAGE_SUFFIXES,
    as_rgb8,
    as_rgb_float,
    decode_image,
    encode_image,
    read_image,
    write_image,
)

RNG = np.random.default_rng(7)


def _smooth_image() -> np.ndarray:
    return cv2.GaussianBlur(RNG.integers(0, 256, (60, 80, 3), dtype=np.uint8), (0, 0), 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [(), (3,), (4,)])
def test_a_png_is_read_back_as_it_was_stored(tmp_path: Path, dtype: type, channels: tuple[int, ...]) -> None:
    image = RNG.integers(0, np.iinfo(dtype).max, (5, 7, *channels), dtype=dtype)
    write_image(tmp_path / "größe €.png", image)
    stored = read_image(tmp_path / "größe €.png")
    assert stored.dtype == dtype
    np.testing.assert_array_equal(stored, image)


def test_red_comes_first(tmp_path: Path) -> None:
    red = np.zeros((2, 2, 3), np.uint8)
    red[..., 0] = 200
    write_image(tmp_path / "red.png", red)
    assert cv2.imread(str(tmp_path / "red.png"))[0, 0].tolist() == [0, 0, 200]
    assert read_image(tmp_path / "red.png")[0, 0].tolist() == [200, 0, 0]


def test_missing_folder_empty_and_text_each_have_their_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    (tmp_path / "notes.png").write_text("just some notes\nof mine")
    (tmp_path / "noise.png").write_bytes(b"\x00\xff\x13\x37 something else")
    for name, words in {
        "absent.png": "does not exist",
        "": "is a folder",
        "empty.png": "is empty",
        "notes.png": "is text ('just some notes'",
        "noise.png": "first bytes 00 ff 13 37",
    }.items():
        with pytest.raises(AanetError) as error:
            read_image(tmp_path / name)
        assert words in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tif", ".webp"])
@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_cut_image_is_reported_in_one_sentence_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], suffix: str, kept: float
) -> None:
    whole = encode_image(_smooth_image(), suffix)
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(AanetError, match="damaged"):
        read_image(path)
    assert capfd.readouterr() == ("", "")


def test_a_png_with_one_flipped_bit_is_damaged(tmp_path: Path) -> None:
    data = bytearray(encode_image(_smooth_image(), ".png"))
    data[len(data) // 2] ^= 4
    (tmp_path / "flipped.png").write_bytes(data)
    with pytest.raises(AanetError, match="damaged"):
        read_image(tmp_path / "flipped.png")


def test_bytes_after_the_end_of_a_jpeg_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(encode_image(_smooth_image(), ".jpg") + b"appended by a phone")
    assert read_image(tmp_path / "a.jpg").shape == (60, 80, 3)


def test_every_kind_becomes_rgb() -> None:
    gray16 = np.array([[0, 65535, 32768]], np.uint16)
    assert as_rgb8(gray16).tolist() == [[[0] * 3, [255] * 3, [128] * 3]]
    np.testing.assert_allclose(as_rgb_float(gray16)[0, :, 1], [0, 1, 32768 / 65535])
    alpha = np.dstack([np.full((2, 2, 3), 51, np.uint8), np.zeros((2, 2), np.uint8)])
    assert as_rgb8(alpha).tolist() == np.full((2, 2, 3), 51).tolist()
    np.testing.assert_allclose(as_rgb_float(alpha), np.full((2, 2, 3), 0.2), rtol=1e-6)
    every = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    np.testing.assert_array_equal(as_rgb8(as_rgb_float(every)), np.repeat(every, 3, axis=2))
    np.testing.assert_array_equal(as_rgb8(every.astype(np.uint16) * 257), np.repeat(every, 3, axis=2))


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.full((2, 2, 3), 200.0), "values in 0..1; got 200 to 200"),
        (np.full((2, 2, 3), np.nan), "values in 0..1"),
        (np.zeros((2, 2, 3), np.int64), "got int64"),
        (np.zeros((2, 2, 2), np.uint8), r"got \(2, 2, 2\)"),
        (np.zeros((0, 2, 3), np.uint8), r"got \(0, 2, 3\)"),
    ],
)
def test_what_is_no_image_is_refused(image: np.ndarray, words: str) -> None:
    with pytest.raises(AanetError, match=words):
        as_rgb_float(image)


def test_writing_refuses_what_the_format_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(AanetError, match="8 bits per channel"):
        write_image(tmp_path / "a.jpg", np.zeros((2, 2, 3), np.uint16))
    with pytest.raises(AanetError, match=r"'\.xyz'"):
        write_image(tmp_path / "a.xyz", np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(AanetError, match="got float64"):
        write_image(tmp_path / "a.png", np.zeros((2, 2, 3)))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.full((2, 2, 3), 9, np.uint8)
    write_image(tmp_path / "a.png", image)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(AanetError, match="no space left"):
        write_image(tmp_path / "a.png", image + 1)
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    np.testing.assert_array_equal(read_image(tmp_path / "a.png"), image)


@pytest.mark.parametrize("suffix", IMAGE_SUFFIXES)
@pytest.mark.parametrize("shape", [(1, 1), (37, 301), (300, 20), (64, 64)])
def test_the_header_states_the_size(suffix: str, shape: tuple[int, int]) -> None:
    color = () if suffix == ".pgm" else (3,)
    data = encode_image(np.zeros((*shape, *color), np.uint8), suffix)
    assert image_size(data) == shape[::-1]
    assert decode_image(data, "flat").shape[:2] == shape  # a flat image has the fewest bytes of all


def _png_chunk(kind: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def _png(width: int, height: int, *middle: bytes) -> bytes:
    header = _png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(middle) + _png_chunk(b"IEND", b"")


def _jpeg_with_size(width: int, height: int) -> bytes:
    data = bytearray(encode_image(_smooth_image(), ".jpg"))
    at = data.find(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_jpeg_with_size(2828, 2828), "too few for a JPEG of 2828×2828"),
        (_jpeg_with_size(60_000, 2), "60000×2 pixels; an image has 1 to 32767"),
        (_jpeg_with_size(0, 0), "0×0 pixels"),
        (_png(1_000_000, 8), "1000000×8 pixels"),
        (_png(30_000, 30_000), "at most 268 megapixels"),
        (_png(80, 60, _png_chunk(b"tEXt", b"") * 150_000), "damaged"),
        (b"\xff\xd8" + b"\xff\xe1\x00\x02" * 200_000, "damaged: its header"),
        (b"\xff\xd8" + b"\xff" * 3_000_000, "damaged: its header"),
        (b"P6\n#" + b" " * 3_000_000, "damaged: its header"),
        (b"P6\n" + b"9" * 10_000 + b" 4 255\n", "damaged: its header"),
        (b"II*\x00\xff\xff\xff\xff", "damaged: its header"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "damaged: its header"),
    ],
    ids=lambda value: repr(value[:8]) if isinstance(value, bytes) else "",
)
def test_the_size_is_bounded_before_anything_is_decoded(data: bytes, words: str) -> None:
    with pytest.raises(AanetError, match=words) as error:
        decode_image(data, "a")
    assert "\n" not in str(error.value)
