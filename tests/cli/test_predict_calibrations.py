"""`aanet predict` with calibrations: from raw images and what other programs write to right meters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.geometry.calibration import load_calibration
from aanet.geometry.camera import StereoCamera
from aanet.geometry.rectification import Calibration, RawCalibration
from aanet.io.images import read_image, write_image
from helpers.calibrations import (
    FISHEYE,
    RAW,
    camera_info,
    photograph_wall,
    put_opencv_sample,
    stereo_entries,
    storage,
)
from helpers.matching_network import plane, textured_scene


def predict(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["predict", *(str(each) for each in arguments), "--model", "sgbm"])
    if isinstance(result.exception, AanetError):
        raise result.exception
    return result


def put_pair(folder: Path, left: object, right: object) -> tuple[Path, Path]:
    for name, image in (("l.png", left), ("r.png", right)):
        write_image(folder / name, image)
    return folder / "l.png", folder / "r.png"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return put_pair(tmp_path, *plane(64, 128, 12))


def put_calibration(folder: Path, raw: RawCalibration, kind: str) -> list[object]:
    """Write a calibration as another program would; return the options that name it."""
    if kind == "ROS":
        for side, text in zip(("left", "right"), camera_info(raw), strict=True):
            (folder / f"{side}.yaml").write_text(text)
        return ["--calib", folder / "left.yaml", "--calib-right", folder / "right.yaml"]
    model = "fisheye" if raw.fisheye else "plumb_bob"
    (folder / "rig.yml").write_bytes(storage({**stereo_entries(raw, 1000), "distortion_model": model}))
    return ["--calib", folder / "rig.yml", "--unit", "mm"]


@pytest.mark.parametrize("kind", ["ROS", "OpenCV"])
@pytest.mark.parametrize("raw", [RAW, FISHEYE], ids=["pinhole", "fisheye"])
def test_raw_images_give_right_meters(tmp_path: Path, raw: RawCalibration, kind: str) -> None:
    files = put_pair(tmp_path, *photograph_wall(raw, 2.0))
    options = ["--max-disparity", 64, "--save", "depth.npy", "-o", tmp_path / "out"]
    done = predict(*files, *put_calibration(tmp_path, raw, kind), *options)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""  # no warning that the pair is not rectified
    depth = np.load(tmp_path / "out" / "l_depth.npy")
    assert np.nanmedian(depth[100:-100, 100:-100]) == pytest.approx(2.0, rel=0.02)


def test_a_raw_pair_is_rectified_and_the_rectified_pair_can_be_saved(tmp_path):
    pair = [textured_scene(480, 640, seed) for seed in (0, 1)]
    files = put_pair(tmp_path, *pair)
    calib = [*put_opencv_sample(tmp_path, 1000), "--unit", "mm"]
    options = ["-o", tmp_path / "out", "--save", "left,right,camera,depth", "--json"]
    done = predict(*files, *calib, *options)
    assert done.exit_code == 0, done.output
    expected = Calibration(RAW)
    for side, image in zip(("left", "right"), expected.rectify(*pair), strict=True):
        np.testing.assert_array_equal(read_image(tmp_path / "out" / f"l_{side}.png"), image)
    saved = load_calibration(tmp_path / "out" / "l_camera.json").camera
    assert saved.baseline_m == pytest.approx(expected.camera.baseline_m)
    assert saved.fx == pytest.approx(expected.camera.fx)
    (one,) = json.loads(done.stdout)["pairs"]
    assert StereoCamera(**one["camera"]) == saved


def test_images_may_be_rectified_already_and_resized(pair, tmp_path):
    calib = put_opencv_sample(tmp_path)
    StereoCamera(fx=200, cx=128, cy=64, baseline_m=0.12, width=256, height=128).save(tmp_path / "large.json")
    options = ["-o", tmp_path / "out", "--save", "left,camera", "--overwrite"]
    assert predict(*pair, *calib, "--rectified", *options).exit_code == 0
    np.testing.assert_array_equal(read_image(tmp_path / "out" / "l_left.png"), read_image(pair[0]))
    fx = stereo_entries()["P1"][0, 0]
    assert load_calibration(tmp_path / "out" / "l_camera.json").camera.fx == pytest.approx(fx)
    assert predict(*pair, "--calib", tmp_path / "large.json", "--resized", *options).exit_code == 0
    assert load_calibration(tmp_path / "out" / "l_camera.json").camera.fx == pytest.approx(100)


def test_a_calibration_of_another_size_stops_before_anything_is_matched(tmp_path, monkeypatch):
    for index in range(2):
        for side, image in zip(("left", "right"), plane(64, 128, 8, index), strict=True):
            write_image(tmp_path / side / f"{index}.png", image)
    monkeypatch.setattr("aanet.matcher.StereoMatcher._match_group", lambda *_: pytest.fail("it was matched"))
    StereoCamera(fx=1, cx=1, cy=1, baseline_m=1, width=256, height=128).save(tmp_path / "large.json")
    calib = ["--calib", tmp_path / "large.json", "--save", "color,depth"]
    done = predict(tmp_path, *calib, "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert done.stderr.count("256×128 pixels; these have 128×64; if they were resized") == 2
    assert done.stderr.count("give --resized.") == 2
    assert not (tmp_path / "out").exists()
