"""The whole way: rendered photographs of a board, the calibration, and meters of a scene seen by that rig."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

import aanet
from aanet.errors import InputError
from aanet.rig.calibrate import RigCalibration
from helpers.rendered_rig import Rig, photographed_chessboard, turned


@pytest.fixture(scope="module")
def calibrated() -> tuple[Rig, RigCalibration]:
    rig, pattern, pairs = photographed_chessboard(16)
    return rig, aanet.calibrate(pairs, pattern)


@pytest.mark.slow
def test_the_cameras_of_rendered_photographs_are_recovered(calibrated: tuple[Rig, RigCalibration]) -> None:
    rig, found = calibrated
    summary = found.summary()
    assert found.is_good
    assert found.baseline_m == pytest.approx(rig.baseline, rel=0.005)
    for side, camera in (("left", rig.left), ("right", rig.right)):
        assert summary["cameras"][side]["focal_px"] == pytest.approx([camera.focal] * 2, rel=0.005)
    assert summary["epipolar_rms_px"] < 0.3
    alone = summary["pairs"][6]
    assert (alone["used"], alone["used_by"]) == (False, ["left"])
    assert alone["reason"] == "the board was not found in the right image"
    assert (
        "pair_006: the board was not found in the right image (used for the left camera only)."
        in found.text()
    )


@pytest.mark.slow
def test_a_raw_scene_is_measured_in_meters(calibrated: tuple[Rig, RigCalibration], tmp_path: Path) -> None:
    rig, found = calibrated
    found.save(tmp_path / "rig.yaml")
    rng = np.random.default_rng(1)
    coarse = rng.integers(20, 236, (420, 500), np.uint8)
    texture = cv2.resize(coarse, None, fx=4, fy=4, interpolation=cv2.INTER_LINEAR).astype(np.uint8)
    rotation, corner = turned(8, 20, 0), np.array([-0.85, -0.75, 1.05])
    left, right = rig.photograph(texture, 1000, rotation, corner)
    calibration = aanet.load_calibration(tmp_path / "rig.yaml")
    result = aanet.StereoMatcher("sgbm", max_disparity=64)(left, right, calibration=calibration)
    depth = result.depth()

    # The plane in the frame of the rectified left camera, which only differs by a rotation.
    turn = found.solution.rectification.left_rotation
    normal, point = turn @ rotation[:, 2], turn @ corner
    rows, columns = np.indices(depth.shape)
    camera = calibration.camera
    rays = np.stack([(columns - camera.cx) / camera.fx, (rows - camera.cy) / camera.fx, np.ones(depth.shape)])
    truth = (normal @ point) / np.tensordot(normal, rays, 1)
    assert truth.min() < 0.85
    assert truth.max() > 1.0
    seen_by_both = np.s_[20:-20, 80:-20]
    relative = depth[seen_by_both] / truth[seen_by_both] - 1
    assert abs(np.nanmedian(relative)) < 0.005
    assert np.nanmean(np.abs(relative) < 0.02) > 0.98


@pytest.mark.slow
def test_the_file_is_opencvs_and_says_its_units(
    calibrated: tuple[Rig, RigCalibration], tmp_path: Path
) -> None:
    rig, found = calibrated
    path = tmp_path / "rig.yaml"
    found.save(path)
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
    shapes = {"K1": (3, 3), "D1": (5, 1), "K2": (3, 3), "D2": (5, 1), "R": (3, 3), "T": (3, 1)}
    shapes |= {"R1": (3, 3), "R2": (3, 3), "P1": (3, 4), "P2": (3, 4), "Q": (4, 4)}
    assert {key: storage.getNode(key).mat().shape for key in shapes} == shapes
    assert (storage.getNode("image_width").real(), storage.getNode("image_height").real()) == rig.left.size
    assert storage.getNode("distortion_model").string() == "plumb_bob"
    assert storage.getNode("units").string() == "meters"
    np.testing.assert_array_equal(storage.getNode("T").mat(), found.solution.translation)
    raw = [storage.getNode(key).mat() for key in ("K1", "D1", "K2", "D2", "R", "T")]
    *_, opencvs, _, _ = cv2.stereoRectify(*raw[:4], rig.left.size, *raw[4:], alpha=0)
    np.testing.assert_allclose(storage.getNode("Q").mat(), opencvs, rtol=1e-9, atol=1e-9)
    camera = aanet.load_calibration(path).camera
    np.testing.assert_allclose(camera.fx, storage.getNode("P1").mat()[0, 0])
    assert camera.baseline_m == pytest.approx(found.baseline_m)
    assert found.calibration.camera == camera


@pytest.mark.slow
def test_the_picture_has_lines_over_a_rectified_pair(calibrated: tuple[Rig, RigCalibration]) -> None:
    _, found = calibrated
    picture = found.picture()
    assert picture.shape[1] > 1280
    green = (picture == (0, 220, 90)).all(axis=2)
    assert (green.sum(axis=1) > 1200).sum() == 12  # each across both images
    assert found._repr_png_().startswith(b"\x89PNG")
    assert repr(found).startswith("RigCalibration(480×360, pinhole, baseline 60")
    assert repr(found).endswith("15 pairs, good)")


@pytest.mark.slow
def test_a_bad_calibration_is_saved_only_by_force(tmp_path: Path) -> None:
    _, pattern, pairs = photographed_chessboard(16)
    found = aanet.calibrate([(right, left) for left, right in pairs[4:9]], pattern)
    assert len(found.problems) == 2
    with pytest.raises(InputError, match="not written: The sides are swapped"):
        found.save(tmp_path / "rig.yaml")
    assert not list(tmp_path.iterdir())
    found.save(tmp_path / "rig.yaml", force=True)
    assert (tmp_path / "rig.yaml").is_file()


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="square_mm"):
        aanet.calibrate([], "chessboard:9x6")
    with pytest.raises(InputError, match="pinhole, fisheye; got 'wide'"):
        aanet.calibrate([], "chessboard:9x6", 25, model="wide")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="There are no pairs"):
        aanet.calibrate([], "chessboard:9x6", 25)
