from __future__ import annotations

import struct
import tracemalloc
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aanet.errors import AanetError
from aanet.io.disparity import (
    decode_pfm,
    encode_pfm,
    read_disparity,
    write_disparity,
    write_pfm,
)
from aanet.io.images import write_image
from aanet.io.maps import encode_npy

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(np.uint16, SHAPES))
def test_png_disparities_survive_exactly_with_zero_as_unknown(folder: Path, stored: np.ndarray) -> None:
    disparity = np.where(stored > 0, stored / 256, np.nan).astype(np.float32)
    write_disparity(folder / "d.png", disparity)
    np.testing.assert_array_equal(read_disparity(folder / "d.png"), disparity)
    np.testing.assert_array_equal(cv2.imread(str(folder / "d.png"), cv2.IMREAD_UNCHANGED), stored)


@pytest.mark.parametrize("suffix", [".pfm", ".npy", ".npz"])
@settings(max_examples=25, deadline=None)
@given(disparity=hnp.arrays(np.float32, SHAPES, elements=st.floats(width=32)))
def test_float_formats_keep_every_bit_and_make_the_unknown_nan(
    folder: Path, suffix: str, disparity: np.ndarray
) -> None:
    write_disparity(folder / f"d{suffix}", disparity)
    expected = np.where(np.isfinite(disparity), disparity, np.nan)
    np.testing.assert_array_equal(read_disparity(folder / f"d{suffix}"), expected)


def test_a_known_disparity_near_zero_does_not_become_unknown(tmp_path: Path) -> None:
    write_disparity(tmp_path / "d.png", np.array([[0.0, 0.001, np.nan, np.inf]]))
    np.testing.assert_array_equal(read_disparity(tmp_path / "d.png"), [[1 / 256, 1 / 256, np.nan, np.nan]])


@pytest.mark.parametrize("value", [256.0, -0.5])
def test_png_refuses_disparities_that_it_cannot_hold(tmp_path: Path, value: float) -> None:
    with pytest.raises(AanetError, match=r"0 to 255\.99 px.*\.pfm"):
        write_disparity(tmp_path / "d.png", np.array([[1.0, value]]))
    write_disparity(tmp_path / "d.png", np.array([[255.99]]))
    assert read_disparity(tmp_path / "d.png")[0, 0] == pytest.approx(255.99, abs=1 / 512)


@pytest.mark.parametrize(("order", "scale"), [("<", "-1.0"), (">", "1.0"), ("<", "-0.003922")])
def test_pfm_of_both_byte_orders_runs_from_the_bottom_row(order: str, scale: str) -> None:
    data = f"Pf\n3 2\n{scale}\n".encode() + struct.pack(f"{order}6f", 4, 5, 6, 1, 2, 3)
    np.testing.assert_array_equal(decode_pfm(data, "a.pfm"), [[1, 2, 3], [4, 5, 6]])


def test_pfm_bytes_that_look_like_white_space_are_data() -> None:
    values = np.frombuffer(b"\n\n\n\n    ", "<f4").reshape(1, 2)
    np.testing.assert_array_equal(decode_pfm(encode_pfm(values), "a.pfm"), values)


def test_pfm_is_little_endian_and_marks_the_unknown_with_infinity(tmp_path: Path) -> None:
    write_disparity(tmp_path / "d.pfm", np.array([[1.5, np.nan]]))
    assert (tmp_path / "d.pfm").read_bytes() == b"Pf\n2 1\n-1.0\n" + struct.pack("<2f", 1.5, np.inf)
    color = np.arange(18, dtype=np.float32).reshape(2, 3, 3)
    write_pfm(tmp_path / "c.pfm", color)
    np.testing.assert_array_equal(decode_pfm((tmp_path / "c.pfm").read_bytes(), "c.pfm"), color)


def test_eight_bit_disparities_need_their_scale(tmp_path: Path) -> None:
    write_image(tmp_path / "disp2.png", np.array([[0, 8, 12]], np.uint8))
    with pytest.raises(AanetError, match="give the scale"):
        read_disparity(tmp_path / "disp2.png")
    np.testing.assert_array_equal(read_disparity(tmp_path / "disp2.png", scale=8), [[np.nan, 1, 1.5]])
    with pytest.raises(AanetError, match="positive"):
        read_disparity(tmp_path / "disp2.png", scale=0)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.pfm", b"P5\n2 2\n255\n", "not a PFM file"),
        ("a.pfm", b"Pf\n2 2\n-1\n" + bytes(15), "16 bytes of data, not 15"),
        ("a.npy", b"\x93NUMPY", "not a NumPy file"),
        ("a.npz", b"PK\x03\x04 and then nothing", "not a NumPy file"),
        ("a.npy", b"some words", "not a NumPy file"),
        ("a.txt", b"1 2 3", r"ends in \.png, \.pfm, \.npy, \.npz; got '\.txt'"),
        ("a.png", b"1 2 3", "is not a supported image"),
    ],
)
def test_unusable_files_are_named_with_what_was_expected(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AanetError, match=words):
        read_disparity(tmp_path / name)


def test_arrays_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", depth=np.zeros((2, 2)))
    with pytest.raises(AanetError, match="holds depth; expected 'disparity'"):
        read_disparity(tmp_path / "other.npz")
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    with pytest.raises(AanetError, match="expected numbers"):
        read_disparity(tmp_path / "words.npy")
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    with pytest.raises(AanetError, match="expected numbers"):
        read_disparity(tmp_path / "objects.npy")
    write_image(tmp_path / "color.png", np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(AanetError, match="3 channels"):
        read_disparity(tmp_path / "color.png")


def test_real_ground_truth_reads_in_pixels(real_data: Path) -> None:
    things = sorted((real_data / "sceneflow").rglob("*.pfm"))[0]
    disparity = read_disparity(things)
    assert disparity.shape == (540, 960)
    assert 0 < np.nanmedian(disparity) < 300
    kitti = read_disparity(sorted((real_data / "kitti2015/training").glob("disp_*/*.png"))[0])
    assert 0.05 < np.isfinite(kitti).mean() < 0.5
    assert 5 < np.nanmedian(kitti) < 100


def _npy(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (HEADER.replace("(2, 2)", "(30000, 30000)"), "truncated"),
        (HEADER.replace("(2, 2)", "(99999999999, 99999999999)"), "shape"),
        (HEADER.replace("(2, 2)", "(-1, 2)"), "shape"),
        (HEADER.replace("(2, 2)", "()"), "shape"),
        (HEADER.replace("<f4", "f3"), "expected numbers"),
        (HEADER.replace("'<f4'", "[('a', '<f4')]"), "not a NumPy file"),
        ("(" * 9000, "not a NumPy file"),
        ("{'descr': " + "-" * 9000, "not a NumPy file"),
    ],
)
def test_the_header_of_an_npy_file_is_checked_first(tmp_path: Path, header: str, words: str) -> None:
    (tmp_path / "a.npy").write_bytes(_npy(header, bytes(16)))
    with pytest.raises(AanetError, match=words):
        read_disparity(tmp_path / "a.npy")


def test_arrays_of_either_order_and_every_type_are_read(tmp_path: Path) -> None:
    values = np.arange(12).reshape(3, 4)
    for dtype in ("u1", "<i2", ">i4", "<u8", "f2", ">f4", "f8"):
        for array in (values.astype(dtype), np.asfortranarray(values.astype(dtype))):
            np.save(tmp_path / "a.npy", array)
            np.testing.assert_array_equal(read_disparity(tmp_path / "a.npy"), array.astype(np.float32))


def test_a_zip_bomb_in_an_npz_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aanet.io.maps.MAX_PIXEL_BYTES", 1_000_000)
    np.savez_compressed(tmp_path / "a.npz", disparity=np.zeros((1000, 1000)))
    with pytest.raises(AanetError, match="at most 1 MB"):
        read_disparity(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "longer.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("disparity.npy", encode_npy(np.full((2, 3), 4.0)) + bytes(50_000_000))
    tracemalloc.start()
    assert read_disparity(tmp_path / "longer.npz").tolist() == [[4.0] * 3] * 2
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.npy", b"")
    with pytest.raises(AanetError, match="more than 1000 arrays"):
        read_disparity(tmp_path / "many.npz")
