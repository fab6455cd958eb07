from __future__ import annotations

import os
from pathlib import Path

import pytest

from aanet.errors import ReadError
from aanet.geometry.calibration import load_calibration
from aanet.io.depth import read_depth
from aanet.io.disparity import read_disparity
from aanet.io.files import read_bytes
from aanet.io.images import read_image
from aanet.io.pairs import find_pairs
from aanet.io.points import read_ply


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this system")
@pytest.mark.parametrize(
    ("reader", "suffix"),
    [
        (read_image, ".png"),
        (read_disparity, ".pfm"),
        (read_depth, ".npy"),
        (read_ply, ".ply"),
        (load_calibration, ".txt"),
        (find_pairs, ".csv"),
    ],
)
def test_a_fifo_and_a_device_are_refused_without_waiting(tmp_path: Path, reader, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(ReadError, match="not a regular file; expected a"):
            reader(tmp_path / f"{name}{suffix}")


def test_a_large_file_is_refused_with_its_limit_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(20_000_000)
    with pytest.raises(ReadError, match=r"20\.0 MB; a calibration file may have at most 10 MB"):
        load_calibration(path)
    assert len(read_bytes(path, "a file", limit=20_000_000)) == 20_000_000


def test_no_file_is_left_open_and_odd_paths_are_one_sentence(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else None
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "absent", "does not exist"),
        ("a\0b", "not a valid path"),
        (tmp_path / ("n" * 1000), "name too long"),
    ):
        with pytest.raises(ReadError, match=words):
            read_bytes(path, "a file")
    if before is not None:
        assert len(list(Path("/proc/self/fd").iterdir())) == before
