from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.errors import AanetError, InputError, ReadError
from aanet.geometry.calibration import load_calibration, parse_calibration
from aanet.geometry.camera import StereoCamera
from aanet.geometry.rectification import Calibration, RawCalibration
from aanet.io.images import write_image

KITTI_RAW = """calib_time: 09-Jan-2012 13:57:47
corner_dist: 9.950000e-02
S_rect_02: 1.242000e+03 3.750000e+02
P_rect_02: 721.5377 0.0 6.095593e+02 4.485728e+01 0.0 721.5377 1.728540e+02 2.163791e-01 0 0 1 2.7e-03
S_rect_03: 1.242000e+03 3.750000e+02
P_rect_03: 721.5377 0.0 6.095593e+02 -3.395242e+02 0.0 721.5377 1.728540e+02 2.199936e+00 0 0 1 2.7e-03
"""
KITTI = """P0: 718.856 0 607.1928 0 0 718.856 185.2157 0 0 0 1 0
P1: 718.856 0 607.1928 -386.1448 0 718.856 185.2157 0 0 0 1 0
P2: 718.856 0 607.1928 45.38225 0 718.856 185.2157 -0.1130887 0 0 1 0.003779761
P3: 718.856 0 607.1928 -337.2877 0 718.856 185.2157 2.369057 0 0 1 0.004915215
"""
MIDDLEBURY = """cam0=[994.978 0 311.193; 0 994.978 254.877; 0 0 1]
cam1=[994.978 0 342.279; 0 994.978 254.877; 0 0 1]
doffs=31.086
baseline=193.001
width=741
height=497
ndisp=70
"""
ROS = """image_width: 640
image_height: 480
camera_name: {name}
camera_matrix:
  rows: 3
  cols: 3
  data: [430.1, 0.0, 300.0, 0.0, 431.0, 240.0, 0.0, 0.0, 1.0]
distortion_model: plumb_bob
projection_matrix:
  rows: 3
  cols: 4
  data: {data}
"""
ROS_LEFT = "[400.0, 0.0, 320.5, 0.0, 0.0, 400.0,\n    239.5, 0.0, 0.0, 0.0, 1.0, 0.0]"
ROS_RIGHT = "".join(f"\n  - {value}" for value in (400.0, 0, 322.5, -48.0, 0, 400.0, 239.5, 0, 0, 0, 1, 0))

RAW = RawCalibration(
    left_matrix=np.array([[420.0, 0, 322], [0, 421, 238], [0, 0, 1]]),
    left_distortion=np.array([-0.2, 0.05, 0.001, -0.0005, 0.0])[:, None],
    right_matrix=np.array([[425.0, 0, 318], [0, 424, 243], [0, 0, 1]]),
    right_distortion=np.array([-0.18, 0.04, -0.0004, 0.0008, 0.0])[:, None],
    rotation=cv2.Rodrigues(np.array([0.01, -0.02, 0.015]))[0],
    translation=np.array([-0.11, 0.002, 0.003])[:, None],
    width=640,
    height=480,
)


def _write(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def _opencv(path: Path, meters_per_unit: float = 1.0, names: str = "M", size: bool = True) -> Path:
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    for side, matrix, distortion in (
        (1, RAW.left_matrix, RAW.left_distortion),
        (2, RAW.right_matrix, RAW.right_distortion),
    ):
        storage.write(f"{names}{side}", matrix)
        storage.write(f"D{side}", distortion)
    storage.write("R", RAW.rotation)
    storage.write("T", RAW.translation / meters_per_unit)
    if size:
        storage.write("image_width", 640)
        storage.write("image_height", 480)
    storage.release()
    return path


def test_kitti_takes_the_color_cameras(tmp_path: Path) -> None:
    raw = load_calibration(_write(tmp_path / "a.txt", KITTI_RAW)).camera
    assert (raw.fx, raw.cx, raw.cy, raw.width, raw.height) == (721.5377, 609.5593, 172.854, 1242, 375)
    assert raw.baseline_m == pytest.approx(0.5327, abs=1e-4)
    assert raw.doffs == 0
    odometry = parse_calibration(KITTI).camera
    assert odometry.baseline_m == pytest.approx(0.5323, abs=1e-4)
    assert (odometry.fx, odometry.width) == (718.856, None)


def test_middlebury_is_in_millimeters_and_has_two_principal_points(tmp_path: Path) -> None:
    camera = load_calibration(_write(tmp_path / "calib.txt", MIDDLEBURY)).camera
    assert camera.baseline_m == pytest.approx(0.193001)
    assert camera.cx_right == pytest.approx(342.279)
    assert (camera.width, camera.height) == (741, 497)
    disparity = np.full((497, 741), 30.0, np.float32)
    assert camera.depth(disparity)[0, 0] == pytest.approx(193.001 * 994.978 / (30 + 31.086) / 1000, rel=1e-6)


def test_a_pair_of_ros_files_in_both_styles_of_yaml(tmp_path: Path) -> None:
    left = _write(tmp_path / "left.yaml", ROS.format(name="left", data=ROS_LEFT))
    right = _write(tmp_path / "right.yaml", ROS.format(name="right", data=ROS_RIGHT))
    camera = load_calibration(left, right).camera
    assert camera == StereoCamera(
        fx=400, fy=400, cx=320.5, cy=239.5, cx_right=322.5, baseline_m=0.12, width=640, height=480
    )
    with pytest.raises(InputError, match="one camera; give the other"):
        load_calibration(left)
    with pytest.raises(AanetError, match=r"0\.12 m to the left of the first; give the left one first"):
        load_calibration(right, left)


@pytest.mark.parametrize(("suffix", "names"), [(".yml", "M"), (".xml", "K"), (".json", "cameraMatrix")])
def test_opencv_calibrations_give_a_rectifier(tmp_path: Path, suffix: str, names: str) -> None:
    rectifier = load_calibration(_opencv(tmp_path / f"stereo{suffix}", names=names))
    assert not rectifier.is_rectified
    assert rectifier.camera.baseline_m == pytest.approx(np.linalg.norm(RAW.translation))
    assert (rectifier.camera.width, rectifier.camera.height) == (640, 480)
    assert rectifier.camera == Calibration(RAW).camera


def test_opencv_files_in_millimeters_or_without_size_ask_for_it(tmp_path: Path) -> None:
    millimeters = _opencv(tmp_path / "mm.yml", meters_per_unit=0.001)
    with pytest.raises(AanetError, match=r"110\.1 m; .*meters_per_unit=0\.001"):
        load_calibration(millimeters)
    rectifier = load_calibration(millimeters, meters_per_unit=0.001)
    assert rectifier.camera.baseline_m == pytest.approx(np.linalg.norm(RAW.translation))


def test_the_images_tell_their_size_to_a_calibration_that_does_not_state_it(tmp_path: Path) -> None:
    bare = _opencv(tmp_path / "bare.yml", size=False)
    unsized = load_calibration(bare)
    with pytest.raises(InputError, match="does not state its image size"):
        _ = unsized.camera
    expected = Calibration(RAW).camera
    assert load_calibration(bare, size=(640, 480)).camera == unsized.for_size(640, 480).camera == expected
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


@pytest.mark.parametrize("content", [MIDDLEBURY, KITTI], ids=["middlebury", "kitti"])
def test_a_length_unit_that_would_be_ignored_is_refused(content: str) -> None:
    with pytest.raises(InputError, match="fixed by its format"):
        parse_calibration(content, meters_per_unit=0.001)
    with pytest.raises(InputError, match="must be a positive number; got 0"):
        parse_calibration(content, meters_per_unit=0)


def test_opencv_intrinsics_and_extrinsics_may_be_two_files(tmp_path: Path) -> None:
    whole = (_opencv(tmp_path / "whole.yml")).read_text()
    head, tail = whole.split("R: !!opencv-matrix")
    left = _write(tmp_path / "intrinsics.yml", head)
    right = _write(tmp_path / "extrinsics.yml", "%YAML:1.0\n---\nR: !!opencv-matrix" + tail)
    assert load_calibration(left, right).camera == Calibration(RAW).camera
    with pytest.raises(ReadError, match="R, T is missing"):
        load_calibration(left)


def test_rectified_points_lie_on_one_row_and_give_their_distance() -> None:
    """Marks drawn where raw cameras see points in space are found by the rectified geometry."""
    calibration = Calibration(RAW)
    points = np.array([[0.1, 0.1, 1.5], [-0.4, -0.2, 2.5], [0.3, -0.3, 1.8], [-0.2, 0.3, 2.0]])
    no_turn = np.zeros(3)
    turn = cv2.Rodrigues(RAW.rotation)[0]
    seen = [
        cv2.projectPoints(points, no_turn, no_turn, RAW.left_matrix, RAW.left_distortion)[0][:, 0],
        cv2.projectPoints(points, turn, RAW.translation, RAW.right_matrix, RAW.right_distortion)[0][:, 0],
    ]
    y, x = np.mgrid[:480, :640]
    for index, point in enumerate(points):
        left, right = (
            (255 * np.exp(-((x - at[index, 0]) ** 2 + (y - at[index, 1]) ** 2) / 18)).astype(np.float32)
            for at in seen
        )
        marks = [
            ((image * x).sum() / image.sum(), (image * y).sum() / image.sum())
            for image in calibration.rectify(left, right)
        ]
        assert marks[0][1] == pytest.approx(marks[1][1], abs=0.1)
        disparity = np.full((480, 640), marks[0][0] - marks[1][0], np.float32)
        column, row = round(marks[0][0]), round(marks[0][1])
        found = calibration.camera.points(disparity)[row, column]
        assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(point), rel=0.005)


def test_the_rectifier_keeps_type_and_channels_and_checks_the_size() -> None:
    calibration = Calibration(RAW)
    left, right = calibration.rectify(np.zeros((480, 640, 3), np.uint8), np.zeros((480, 640, 3), np.uint16))
    assert (left.shape, left.dtype, right.dtype) == ((480, 640, 3), np.uint8, np.uint16)
    with pytest.raises(AanetError, match="640×480 images; the right one has 320×240"):
        calibration.rectify(left, np.zeros((240, 320), np.uint8))


def test_cameras_that_stand_above_each_other_are_refused() -> None:
    upright = RawCalibration(**{**RAW.__dict__, "translation": np.array([[0.0], [-0.1], [0.0]])})
    with pytest.raises(AanetError, match="side by side"):
        Calibration(upright)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("some words", "not a supported calibration file; expected KITTI"),
        ("P0: 1 2 3\n", "twelve numbers in P2 and in P3"),
        ("P2: 1 2 3 4 5 6 7 8 9 10 11 word\nP3: 1", "twelve numbers"),
        ("cam0=[1 0 0; 0 1 0; 0 0 1]\n", "doffs, baseline"),
        ("{ not json", "not valid JSON"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"fx": 1}', '"format": "aanet-stereo-camera"'),
        ('{"format": "aanet-stereo-camera", "fx": 1}', "the numbers fx, cx, cy, baseline_m.*got fx"),
        (
            '{"format": "aanet-stereo-camera", "fx": "a", "cx": 1, "cy": 1, "baseline_m": 1}',
            "expected the numbers",
        ),
        (
            '{"format": "aanet-stereo-camera", "fx": 1, "cx": 1, "cy": 1, "baseline_m": 1, "k": 1}',
            "got fx.*k",
        ),
        ('{"format": "aanet-stereo-camera", "fx": null, "cx": 1, "cy": 1, "baseline_m": 1}', "expected the"),
        ("%YAML:1.0\n---\nQ: 1\n", "M1, M2, D1, D2, R, T is missing"),
        ("%YAML:1.0\n---\nM1: !!opencv-matrix\n  rows: 3\n   nonsense [", "cannot be parsed"),
    ],
)
def test_unusable_files_say_what_was_expected(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(AanetError, match=words) as error:
        load_calibration(_write(tmp_path / "calib", content))
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


@pytest.mark.parametrize("part", ["rotation", "left_matrix", "translation", "right_distortion"])
@pytest.mark.parametrize("value", [-0.5, np.nan, np.inf, 1e300])
def test_a_raw_calibration_is_checked(part: str, value: float) -> None:
    if value < 0 and part in ("right_distortion", "translation"):
        value = -1e7
    with pytest.raises(InputError):
        RawCalibration(**{**RAW.__dict__, part: np.full_like(getattr(RAW, part), value)})
