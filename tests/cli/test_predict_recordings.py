"""`aanet predict` on ROS recordings: time stamps, meters from camera_info, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.geometry.camera import StereoCamera
from aanet.io.depth import read_depth
from aanet.io.disparity import read_disparity
from aanet.io.images import encode_image, read_image
from helpers.matching_network import plane
from helpers.recordings import START, Format, Messages, Recorded, write_recording

SGBM = ["--model", "sgbm", "--max-disparity", 32]
FIRST, NEXT, LAST = (f"{START + 1}.{tenths}00000000" for tenths in (0, 1, 2))


def inside(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["predict", *(str(argument) for argument in arguments)])
    if isinstance(result.exception, AanetError):
        raise result.exception
    return result


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def drive(form: Format, image: str = "image_raw", count: int = 3, distortion: float = 0.0) -> list[Recorded]:
    """Pairs that see planes of 8, 12 and 16 pixels, and the camera_info of both cameras."""
    ros, recorded = Messages(form), []
    for index in range(count):
        seconds = 1 + index / 10
        pixels = plane(64, 128, 8 + 4 * index, seed=index)
        for side, view, baseline in zip(("left", "right"), pixels, (0.0, 0.12), strict=True):
            info = ros.camera_info(128, 64, 100.0, baseline, seconds)
            getattr(info, "D" if form == "bag" else "d")[0] = distortion
            recorded.append((f"/{side}/{image}", seconds, ros.image(view, "rgb8", seconds)))
            recorded.append((f"/{side}/camera_info", seconds, info))
    return recorded


def bag(root: Path, recorded: list[Any], compression: str | None = None) -> Path:
    return write_recording(root / "drive.bag", recorded, "bag", compression)


@pytest.mark.parametrize("form", ["bag", "mcap", "db3"])
def test_meters_and_time_stamps(tmp_path, form):
    path = write_recording(tmp_path / ("drive.bag" if form == "bag" else "drive"), drive(form), form)
    done = inside(path, *SGBM, "--save", "disparity,depth", "-o", tmp_path / "out", "--json")
    assert done.exit_code == 0
    facts = json.loads(done.stdout)
    assert [(pair["name"], pair["time"]) for pair in facts["pairs"]] == [
        (FIRST, START + 1.0),
        (NEXT, START + 1.1),
        (LAST, START + 1.2),
    ]
    assert facts["pairs"][0]["camera"]["baseline_m"] == pytest.approx(0.12)
    assert facts["unmatched"] == []
    assert "Matching /left/image_raw with /right/image_raw, with their camera_info." in done.stderr
    for name, disparity in ((FIRST, 8), (NEXT, 12), (LAST, 16)):
        assert np.median(read_disparity(tmp_path / "out" / f"{name}_disparity.png")[:, 20:]) == disparity
        depth = read_depth(tmp_path / "out" / f"{name}_depth.png")
        assert np.nanmedian(depth) == pytest.approx(100 * 0.12 / disparity, abs=2e-3)


def test_raw_topics_are_rectified_and_rectified_ones_are_not(tmp_path):
    for image, same in (("image_raw", False), ("image_rect", True)):
        folder = tmp_path / image
        folder.mkdir()
        path = bag(folder, drive("bag", image, count=1, distortion=0.3))
        inside(path, *SGBM, "--save", "left", "-o", folder)
        left = read_image(folder / f"{FIRST}_left.png")
        assert np.array_equal(left, plane(64, 128, 8)[0]) == same
    inside(tmp_path / "image_raw" / "drive.bag", *SGBM, "--rectified", "--save", "left", "-o", tmp_path)
    np.testing.assert_array_equal(read_image(tmp_path / f"{FIRST}_left.png"), plane(64, 128, 8)[0])


def test_a_calibration_file_takes_precedence(tmp_path):
    StereoCamera(fx=200, cx=64, cy=32, baseline_m=0.12, width=128, height=64).save(tmp_path / "c.json")
    inside(
        *(bag(tmp_path, drive("bag", count=1)), *SGBM, "--calib", tmp_path / "c.json"),
        *("--save", "depth", "-o", tmp_path / "out"),
    )
    depth = read_depth(tmp_path / "out" / f"{FIRST}_depth.png")
    assert np.nanmedian(depth) == pytest.approx(200 * 0.12 / 8, abs=2e-3)


def test_a_frame_without_a_partner_is_counted_and_costs_nothing_else(tmp_path):
    recorded = [each for each in drive("bag") if each[:2] != ("/right/image_raw", 1.1)]
    done = inside(bag(tmp_path, recorded), *SGBM, "--save", "disparity", "-o", tmp_path / "out", "--json")
    assert done.exit_code == 2
    assert names(tmp_path / "out") == [f"{FIRST}_disparity.png", f"{LAST}_disparity.png"]
    facts = json.loads(done.stdout)
    assert (facts["matched"], facts["failed"]) == (2, 1)
    assert facts["unmatched"] == [f"/left/image_raw {NEXT}"]
    assert f"1 frame without a partner within 0.01 s is skipped: /left/image_raw {NEXT}" in done.stderr


def test_what_is_missing_is_said(tmp_path):
    path = bag(tmp_path, drive("bag", count=1))
    with pytest.raises(AanetError, match=r"no image topic /front; its .*: /left/image_raw, /right/image_raw"):
        inside(path, *SGBM, "--left", "/front", "--right", "/right/image_raw", "-o", tmp_path / "out")
    with pytest.raises(AanetError, match="give --left TOPIC --right TOPIC"):
        inside(path, *SGBM, "--left", "/left/image_raw", "-o", tmp_path / "out")
    with pytest.raises(AanetError, match="does not exist; expected a ROS recording"):
        inside(tmp_path / "no.mcap", *SGBM, "-o", tmp_path / "out")
    assert names(tmp_path / "out") == []


def test_without_a_usable_camera_info_there_are_disparities_only(tmp_path):
    recorded = drive("bag", count=1)
    recorded[3][2].P[3] = 0  # as after a calibration of each camera by itself
    path = bag(tmp_path, recorded)
    done = inside(path, *SGBM, "--save", "disparity", "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert (
        "without a calibration, because their camera_info cannot be used: /right/camera_info" in done.stderr
    )
    with pytest.raises(AanetError, match="Saving depth needs a calibration"):
        inside(path, *SGBM, "--save", "depth", "-o", tmp_path / "out")


def test_a_damaged_image_is_skipped_even_if_it_is_the_first(tmp_path):
    ros = Messages("bag")
    recorded = [
        (f"/{side}/image/compressed", seconds, ros.compressed(encode_image(view, ".png"), "", seconds))
        for seconds in (1.0, 1.1)
        for side, view in zip(("left", "right"), plane(64, 128, 8), strict=True)
    ]
    recorded[0] = (*recorded[0][:2], ros.compressed(b"\x89PNG\r\n\x1a\n", "", 1.0))
    done = inside(bag(tmp_path, recorded), *SGBM, "--save", "disparity", "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert names(tmp_path / "out") == [f"{NEXT}_disparity.png"]
    assert f"{FIRST} is skipped: The image of /left/image/compressed at {FIRST} is damaged" in done.stderr


def test_damage_in_the_middle_keeps_what_came_before(tmp_path):
    path = bag(tmp_path, drive("bag"), "bz2")
    content = bytearray(path.read_bytes())
    chunks = [at for at in range(len(content)) if content.startswith(b"BZh9", at)]
    content[chunks[4] + 50] ^= 255  # the first image of the third pair
    path.write_bytes(content)
    done = inside(path, *SGBM, "--save", "disparity", "-o", tmp_path / "out", "--json")
    assert done.exit_code == 2
    facts = json.loads(done.stdout)
    assert facts["matched"] == 2
    assert "drive.bag is damaged, cut off or not a ROS recording" in facts["error"]
    assert facts["error"] in done.stderr
    assert names(tmp_path / "out") == [f"{FIRST}_disparity.png", f"{NEXT}_disparity.png"]


def test_a_recording_becomes_a_video_of_one_color_scale(tmp_path):
    done = inside(bag(tmp_path, drive("bag")), *SGBM, "--save", "color.mp4,color", "-o", tmp_path / "out")
    assert done.exit_code == 0
    pictures = [f"{name}_color.png" for name in (FIRST, NEXT, LAST)]
    assert names(tmp_path / "out") == [*pictures, "drive_color.mp4"]
    scales = [read_image(tmp_path / "out" / f"{name}_color.png")[:, 128:] for name in (FIRST, LAST)]
    np.testing.assert_array_equal(*scales)
