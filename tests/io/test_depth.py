from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.errors import ReadError
from aanet.io.depth import read_depth, write_depth
from aanet.io.images import write_image


def test_depth_is_millimeters_in_png_and_float_in_npy(tmp_path: Path) -> None:
    depth = np.array([[1.234, 65.535, 0.0001, np.nan, np.inf, 65.6, -1, 0]], np.float32)
    write_depth(tmp_path / "z.png", depth)
    stored = cv2.imread(str(tmp_path / "z.png"), cv2.IMREAD_UNCHANGED)
    assert stored.dtype == np.uint16
    assert stored.tolist() == [[1234, 65535, 1, 0, 0, 0, 0, 0]]
    again = read_depth(tmp_path / "z.png")
    np.testing.assert_array_equal(again[0, :2], depth[0, :2])
    assert np.isnan(again[0, 3:]).all()
    write_depth(tmp_path / "again.png", again)
    np.testing.assert_array_equal(cv2.imread(str(tmp_path / "again.png"), cv2.IMREAD_UNCHANGED), stored)
    write_depth(tmp_path / "z.npy", depth)
    unknown = ~(np.isfinite(depth) & (depth > 0))
    np.testing.assert_array_equal(read_depth(tmp_path / "z.npy"), np.where(unknown, np.nan, depth))


def test_a_picture_of_8_bits_is_no_depth_map(tmp_path: Path) -> None:
    write_image(tmp_path / "gray.png", np.zeros((2, 2), np.uint8))
    with pytest.raises(ReadError, match="millimeters"):
        read_depth(tmp_path / "gray.png")
