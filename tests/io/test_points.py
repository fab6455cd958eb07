from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.io.points import read_ply, write_ply

RNG = np.random.default_rng(5)


def test_points_and_colors_are_read_back_without_the_unknown_ones(tmp_path: Path) -> None:
    points = RNG.normal(size=(4, 5, 3)).astype(np.float32)
    points[1, 2, 2] = np.nan
    points[3, 0, 0] = np.inf
    colors = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    write_ply(tmp_path / "a.ply", points, colors)
    known = np.isfinite(points).all(axis=2)
    assert known.sum() == 18
    stored_points, stored_colors = read_ply(tmp_path / "a.ply")
    np.testing.assert_array_equal(stored_points, points[known])
    np.testing.assert_array_equal(stored_colors, colors[known])


def test_the_header_is_what_other_programs_expect(tmp_path: Path) -> None:
    write_ply(tmp_path / "a.ply", np.array([[1.0, 2.0, 3.0]]), np.array([[7, 8, 9]], np.uint8))
    header, body = (tmp_path / "a.ply").read_bytes().split(b"end_header\n")
    lines = [line for line in header.decode().splitlines() if not line.startswith("comment")]
    assert lines == [
        *("ply", "format binary_little_endian 1.0", "element vertex 1"),
        *("property float x", "property float y", "property float z"),
        *("property uchar red", "property uchar green", "property uchar blue"),
    ]
    assert body == np.array([1, 2, 3], "<f4").tobytes() + bytes([7, 8, 9])


def test_files_of_other_programs_with_more_properties_and_other_order(tmp_path: Path) -> None:
    header = (
        "ply\r\nformat binary_big_endian 1.0\r\nelement vertex 1\r\n"
        "property uchar red\r\nproperty uchar green\r\nproperty uchar blue\r\nproperty uchar alpha\r\n"
        "property double x\r\nproperty double y\r\nproperty double z\r\n"
        "element face 0\r\nproperty list uchar int vertex_indices\r\nend_header\r\n"
    )
    body = bytes([1, 2, 3, 255]) + np.array([0.5, -1.5, 2.5], ">f8").tobytes()
    (tmp_path / "other.ply").write_bytes(header.encode() + body)
    points, colors = read_ply(tmp_path / "other.ply")
    assert points.tolist() == [[0.5, -1.5, 2.5]]
    assert colors.tolist() == [[1, 2, 3]]


def test_unusable_clouds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ply"
    with pytest.raises(AanetError, match="as many uint8 colors"):
        write_ply(path, np.zeros((2, 3)), np.zeros((3, 3), np.uint8))
    path.write_text("ply\nformat ascii 1.0\n")
    with pytest.raises(AanetError, match="not a binary PLY"):
        read_ply(path)
    path.write_text("ply\nformat binary_little_endian 1.0\nelement vertex 0\nproperty float x\nend_header\n")
    with pytest.raises(AanetError, match="no colored vertices"):
        read_ply(path)
    write_ply(path, np.zeros((2, 3)), np.zeros((2, 3), np.uint8))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AanetError, match="truncated"):
        read_ply(path)
