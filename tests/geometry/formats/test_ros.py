"""Pairs of camera_info in the syntaxes of ROS 1 and ROS 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aanet.errors import AanetError, OptionError, ReadError
from aanet.geometry.calibration import load_calibration, parse_calibration
from aanet.geometry.rectification import RawCalibration
from helpers.calibrations import FISHEYE, RAW, SYNTAXES, assert_rectifies, camera_info, rectify


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("raw", [RAW, FISHEYE], ids=["pinhole", "fisheye"])
def test_raw_images_are_rectified_as_image_proc_does(raw: RawCalibration, syntax: str) -> None:
    calibration = parse_calibration(*camera_info(raw, syntax))
    assert not calibration.is_rectified
    assert calibration.camera.fx == pytest.approx(rectify(raw).left_projection[0, 0])
    assert (calibration.camera.width, calibration.camera.height) == (640, 480)
    assert_rectifies(calibration, raw)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_images_that_are_rectified_already_are_taken_as_they_are(syntax: str) -> None:
    calibration = parse_calibration(*camera_info(syntax=syntax), rectified=True)
    assert calibration.is_rectified
    assert calibration.camera == parse_calibration(*camera_info(syntax=syntax)).camera
    only_p = [text[text.index("projection_matrix") :] for text in camera_info()]
    assert parse_calibration(*only_p, rectified=True).camera.width is None
    words = "cannot be rectified without camera_matrix, distortion_coefficients, rectification_matrix; .*True"
    with pytest.raises(OptionError, match=words):
        parse_calibration(*only_p)


def test_the_file_of_one_camera_asks_for_the_other(tmp_path: Path) -> None:
    left, right = tmp_path / "left.yaml", tmp_path / "right.yaml"
    for path, text in zip((left, right), camera_info(), strict=True):
        path.write_text(text)
    assert load_calibration(left, right).camera.baseline_m == pytest.approx(0.11, abs=0.001)
    with pytest.raises(OptionError, match=r"left.yaml is the calibration of one camera.*right_path="):
        load_calibration(left)
    with pytest.raises(AanetError, match=r"0\.11.* m to the left of the first; the first must be"):
        load_calibration(right, left)
    with pytest.raises(ReadError, match="the projection matrix is that of a single camera"):
        load_calibration(left, left)


def test_the_unit_may_be_given_and_a_doubtful_one_must_be() -> None:
    info = camera_info(scale=1000)
    assert parse_calibration(*info, unit="mm").camera.baseline_m == pytest.approx(0.11, abs=0.001)
    assert_rectifies(parse_calibration(*info, unit="mm"), RAW)
    with pytest.raises(OptionError, match=r"110\.\d, which is 0\.110\d m in mm, 1\.1\d+ m in cm"):
        parse_calibration(*info, rectified=True)


def test_an_ideal_camera_may_have_no_coefficients() -> None:
    left, right = (text.replace("plumb_bob", '""') for text in camera_info(syntax="ROS 1"))
    start = [text.index("D: [") for text in (left, right)]
    ideal = [
        text[:at] + "D: []" + text[text.index("]", at) + 1 :]
        for text, at in zip((left, right), start, strict=True)
    ]
    calibration = parse_calibration(*ideal)
    assert not calibration.is_rectified
    assert np.isfinite(calibration.camera.fx)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("binning_x: 0", "binning_x: 2", r"binned or cropped \(binning_x\) are not supported"),
        ("binning_x: 0", "binning_x: [1, 2]", "are not supported"),
        ("x_offset: 0", "x_offset: 16", r"binned or cropped \(roi\) are not supported"),
        ("width: 640", "width: 320", "different sizes, 320×480 and 640×480"),
        ("plumb_bob", "scaramuzza", "the distortion model 'scaramuzza' is not supported; known: plumb_bob"),
        ("plumb_bob", "equidistant", "one camera is a fisheye camera, and the other is not"),
        ("P: [", "P: [1, ", "3×4 numbers in P; got 13"),
        ("P: [", "P: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\nQ: [", "not positive; calibrate the camera"),
        ("K: [", "K: [a, ", "K cannot be parsed"),
        ("R: [", "R: [7, 0, 0, 0, 1, 0, 0, 0, 1]\nS: [", "not a rotation matrix"),
    ],
)
def test_what_cannot_be_used_is_named(old: str, new: str, words: str) -> None:
    left, right = camera_info(syntax="ROS 1")
    assert old in left
    with pytest.raises(AanetError, match=words):
        parse_calibration(left.replace(old, new, 1), right)


def test_four_coefficients_without_a_model_are_refused_with_both_meanings() -> None:
    info = [text.replace('"equidistant"', "''") for text in camera_info(FISHEYE, "ROS 1")]
    with pytest.raises(ReadError, match=r"k1, k2, p1, p2 of a pinhole camera or k1, k2, k3, k4 of a fisheye"):
        parse_calibration(*info)


def test_another_file_is_no_camera_info() -> None:
    left, _ = camera_info()
    with pytest.raises(ReadError, match="The second calibration file: expected a ROS camera_info"):
        parse_calibration(left, "image_width: 640\n")
