"""What holds for calibration files of every format; each format has its own tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aanet.errors import AanetError, InputError
from aanet.geometry.calibration import load_calibration, parse_calibration
from aanet.geometry.rectification import Calibration
from aanet.io.images import write_image
from helpers.calibrations import KITTI, KITTI_RAW, MIDDLEBURY, RAW, stereo_entries, storage


def test_the_images_tell_their_size_to_a_calibration_that_does_not_state_it(tmp_path: Path) -> None:
    bare = tmp_path / "bare.yml"
    bare.write_bytes(storage(stereo_entries()))
    unsized = load_calibration(bare)
    with pytest.raises(InputError, match="does not state its image size"):
        _ = unsized.camera
    assert unsized.for_size(640, 480).camera == Calibration(RAW).camera
    pair = [np.random.default_rng(side).integers(0, 256, (480, 640), np.uint8) for side in (0, 1)]
    for mine, theirs in zip(unsized.rectify(*pair), Calibration(RAW).rectify(*pair), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_rectified_pair_stays_as_it_is_and_has_the_right_size(tmp_path: Path) -> None:
    calibration = parse_calibration(MIDDLEBURY.encode())
    left, right = np.zeros((497, 741, 3), np.uint8), np.ones((497, 741), np.uint16)
    assert calibration.is_rectified
    rectified = calibration.rectify(left, right)
    assert rectified[0] is left
    assert rectified[1] is right
    write_image(tmp_path / "l.png", left)
    np.testing.assert_array_equal(calibration.rectify(tmp_path / "l.png", right)[0], left)
    with pytest.raises(InputError, match="for images of 741×497 pixels; these have 8×4"):
        calibration.rectify(np.zeros((4, 8)), np.zeros((4, 8)))
    assert parse_calibration(KITTI).for_size(1226, 370).camera.width == 1226


def test_a_calibration_is_scaled_if_the_images_are_said_to_be_resized() -> None:
    camera = parse_calibration(MIDDLEBURY, resized=True).for_size(1482, 994).camera
    assert camera.fx == pytest.approx(2 * 994.978)
    assert camera.doffs == pytest.approx(2 * 31.086)
    assert camera.baseline_m == pytest.approx(0.193001)


@pytest.mark.parametrize("unit", ["inch", "", "meters", 0.001])
def test_an_unknown_unit_is_refused(unit: object) -> None:
    with pytest.raises(InputError, match="The unit of a calibration is mm, cm or m; got"):
        parse_calibration(storage(stereo_entries()), unit=unit)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("some words", "not a supported calibration file; expected KITTI"),
        ("key: value", "not a supported calibration file; expected KITTI"),
        ("<html></html>", "not a supported calibration file"),
        ("{ not json", "not valid JSON"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"fx": 1}', "not a supported calibration file"),
        ('{"format": "aanet-stereo-camera", "fx": 1}', "the numbers fx, cx, cy, baseline_m.*got fx"),
        ('{"a": {"format": "aanet-stereo-camera"}}', '"format": "aanet-stereo-camera"'),
        (
            '{"format": "aanet-stereo-camera", "fx": "a", "cx": 1, "cy": 1, "baseline_m": 1}',
            "expected the numbers",
        ),
        (
            '{"format": "aanet-stereo-camera", "fx": 1, "cx": 1, "cy": 1, "baseline_m": 1, "k": 1}',
            "got fx.*k",
        ),
        ('{"format": "aanet-stereo-camera", "fx": null, "cx": 1, "cy": 1, "baseline_m": 1}', "expected the"),
        ("%YAML:1.0\n---\nQ: 1\n", "left camera matrix.* missing; expected keys such as K1.* it has Q"),
        ("%YAML:1.0\n---\nM1: !!opencv-matrix\n  rows: 3\n   nonsense [", "cannot be parsed"),
    ],
)
def test_unusable_files_say_what_was_expected(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "calib").write_text(content)
    with pytest.raises(AanetError, match=words) as error:
        load_calibration(tmp_path / "calib")
    assert "\n" not in str(error.value)


CAMERA = '{"format": "aanet-stereo-camera", "fx": 1, "cx": 1, "cy": 1, "baseline_m": 1}'
DEEP = 40_000


@pytest.mark.parametrize(
    "content",
    [
        "%YAML:1.0\na: " + "[" * DEEP,
        "%YAML:1.0\nM1: " + "{a: " * DEEP,
        "<?xml version='1.0'?>" + "<a>" * DEEP,
        '{"opencv-matrix": ' + "[" * DEEP,
        "\n" * 255_000,
        "cam0=x" + " " * 254_000 + "y",
        "P" * 255_000,
        "projection_matrix:" * 14_000,
        "k:\n" + "- 1\n" * 60_000,
        "#" * 255_000,
        "a: 1\n---\n" * 25_000 + "a: 2\n",
        "cam0:\n" + "  a: 1\n" * 30_000,
        "cam0:\n  camera_model: " + "x" * 200_000,
        "\n".join(f"key{index}: {index}" for index in range(15_000)),
        '{"K1": ' + "[" * 900 + "]" * 900 + "}",
        "<?xml" + "<" * 255_000,
        "%YAML" + "\nM1: !!opencv-matrix" * 12_000,
        CAMERA.replace('"cx": 1', '"cx": NaN'),
        CAMERA.replace('"cy": 1', '"cy": 1e999'),
        CAMERA.replace("}", ', "cx_right": Infinity}'),
        CAMERA.replace("}", ', "width": true}'),
        CAMERA.replace("}", ', "width": 1e300, "height": 4}'),
        CAMERA.replace('"fx": 1', '"fx": ' + "1" * 4000),
        CAMERA.replace('"fx": 1', '"fx": 1e-300'),
        CAMERA.replace("}", r', "\ud800": 1}'),
        "[1, 2]",
        MIDDLEBURY.replace("doffs=31.086", "doffs=nan"),
        MIDDLEBURY.replace("width=741", "width=1e300"),
        MIDDLEBURY.replace("width=741", "width=7_41"),
        MIDDLEBURY.replace("994.978", "0"),
        KITTI.replace("718.856", "0"),
        KITTI_RAW.replace("1.242000e+03", "1e30"),
        KITTI_RAW.replace("721.5377", "inf"),
    ],
    ids=lambda content: repr(content[:20]),
)
def test_nothing_crashes_or_stalls_and_no_number_is_out_of_bounds(content: str) -> None:
    with pytest.raises(AanetError) as error:
        parse_calibration(content)
    str(error.value).encode()  # no lone surrogates, which an answer in JSON could not hold
    assert len(str(error.value)) < 400
