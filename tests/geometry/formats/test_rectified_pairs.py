"""KITTI and Middlebury; the JSON of a camera is tested with the camera."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aanet.errors import AanetError, InputError
from aanet.geometry.calibration import load_calibration, parse_calibration
from helpers.calibrations import KITTI, KITTI_RAW, MIDDLEBURY


def test_kitti_takes_the_color_cameras(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(KITTI_RAW)
    raw = load_calibration(tmp_path / "a.txt").camera
    assert (raw.fx, raw.cx, raw.cy, raw.width, raw.height) == (721.5377, 609.5593, 172.854, 1242, 375)
    assert raw.baseline_m == pytest.approx(0.5327, abs=1e-4)
    assert raw.doffs == 0
    odometry = parse_calibration(KITTI).camera
    assert odometry.baseline_m == pytest.approx(0.5323, abs=1e-4)
    assert (odometry.fx, odometry.width) == (718.856, None)


@pytest.mark.parametrize("indent", ["", " ", "\t "])
def test_middlebury_is_in_millimeters_and_has_two_principal_points(indent: str) -> None:
    text = "".join(f"{indent}{line.replace('=', '= ')}\n" for line in MIDDLEBURY.splitlines())
    camera = parse_calibration(text.encode()).camera
    assert camera.baseline_m == pytest.approx(0.193001)
    assert camera.cx_right == pytest.approx(342.279)
    assert (camera.width, camera.height) == (741, 497)
    disparity = np.full((497, 741), 30.0, np.float32)
    assert camera.depth(disparity)[0, 0] == pytest.approx(193.001 * 994.978 / (30 + 31.086) / 1000, rel=1e-6)


@pytest.mark.parametrize("content", [MIDDLEBURY, KITTI], ids=["middlebury", "kitti"])
def test_the_unit_is_fixed_and_one_file_is_enough(content: str) -> None:
    with pytest.raises(InputError, match="has a unit of length that its format fixes"):
        parse_calibration(content, unit="mm")
    with pytest.raises(InputError, match="describes both cameras; do not give a second file, right_path="):
        parse_calibration(content, content)
    assert parse_calibration(content, rectified=True).is_rectified


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("P0: 1 2 3\n", "expected KITTI's color cameras, P2 and P3"),
        ("P2: 1 2 3 4 5 6 7 8 9 10 11 word\nP3: 1", "P2 cannot be parsed"),
        (KITTI.replace("P3: 718.856", "P3:"), "3×4 numbers in P3; got 11"),
        ("cam0=[1 0 0; 0 1 0; 0 0 1]\n", "doffs, baseline"),
        (KITTI_RAW.replace("S_rect_02: 1.242000e+03", "S_rect_02:"), "2 numbers in S_rect_02; got 1"),
    ],
)
def test_unusable_files_say_what_was_expected(content: str, words: str) -> None:
    with pytest.raises(AanetError, match=words):
        parse_calibration(content)
