from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.geometry.calibration import parse_calibration
from aanet.geometry.rectification import Calibration, RawCalibration
from helpers.calibrations import BASELINE_M, FISHEYE, RAW, assert_rectifies

RADTAN = dataclasses.replace(
    RAW, left_distortion=RAW.left_distortion[:4], right_distortion=RAW.right_distortion[:4]
)


def camchain(raw: RawCalibration, indent: str = "") -> str:
    pose = np.vstack([np.hstack([raw.rotation, raw.translation]), [0, 0, 0, 1]])
    rows = "".join(f"  {indent}- {row.tolist()}\n" for row in pose)
    cameras = []
    for matrix, distortion in (
        (raw.left_matrix, raw.left_distortion),
        (raw.right_matrix, raw.right_distortion),
    ):
        first, *others = distortion.ravel().tolist()
        cameras.append(
            "  cam_overlaps: [1]\n"
            "  camera_model: pinhole\n"
            f"  distortion_coeffs: [{first},\n    {', '.join(map(str, others))}]\n"
            f"  distortion_model: {'equidistant' if raw.fisheye else 'radtan'}\n"
            f"  intrinsics: {[float(matrix[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2))]}\n"
            "  resolution: [640, 480]\n"
            "  rostopic: /cam/image_raw\n"
        )
    imu = "  T_cam_imu:\n" + "  - [1.0, 0.0, 0.0, 0.0]\n" * 4
    return f"cam0:\n{imu}{cameras[0]}cam1:\n{imu}  T_cn_cnm1:\n{rows}{cameras[1]}"


@pytest.mark.parametrize("head", ["", "%YAML:1.0\n", "# Kalibr\n---\n"])
@pytest.mark.parametrize("raw", [RADTAN, FISHEYE], ids=["pinhole-radtan", "pinhole-equi"])
def test_a_camchain_rectifies(raw: RawCalibration, head: str) -> None:
    calibration = parse_calibration((head + camchain(raw)).encode())
    assert calibration.camera == Calibration(raw).camera
    assert calibration.camera.baseline_m == pytest.approx(BASELINE_M)
    assert not calibration.is_rectified
    if not head:
        assert_rectifies(calibration, raw)


def test_lists_may_be_indented_and_a_camera_may_have_no_distortion() -> None:
    assert parse_calibration(camchain(RADTAN, "  ")).camera == Calibration(RADTAN).camera
    none = camchain(RADTAN).replace("radtan", "none")
    ideal = dataclasses.replace(RADTAN, left_distortion=np.zeros((4, 1)), right_distortion=np.zeros((4, 1)))
    assert parse_calibration(none).camera == Calibration(ideal).camera


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "camera_model: pinhole",
            "camera_model: omni",
            "cam0: the camera model 'omni-radtan' of Kalibr",
        ),
        ("camera_model: pinhole", "camera_model: ds", "'ds-radtan'"),
        (
            "distortion_model: radtan",
            "distortion_model: fov",
            "'pinhole-fov'.*expected pinhole-radtan or",
        ),
        ("distortion_model: radtan", "distortion_model: equidistant", "one camera is a fisheye camera"),
        ("T_cn_cnm1", "T_other", "expected T_cn_cnm1 in cam1"),
        ("cam1:", "cam2:", "expected two cameras of Kalibr, cam0 and cam1"),
        ("resolution: [640, 480]", "resolution: [320, 240]", "different sizes, 320×240 and 640×480"),
        ("intrinsics: [", "intrinsics: [1, ", "expected 4 numbers in intrinsics; got 5"),
        ("distortion_coeffs", "coeffs", "distortion_coeffs is missing"),
    ],
)
def test_what_cannot_be_used_is_named(old: str, new: str, words: str) -> None:
    text = camchain(RADTAN)
    assert old in text
    with pytest.raises(AanetError, match=words):
        parse_calibration(text.replace(old, new, 1))


def test_a_camchain_describes_both_cameras_and_raw_images_only() -> None:
    text = camchain(RADTAN)
    with pytest.raises(AanetError, match="describes both cameras; do not give a second file"):
        parse_calibration(text, text)
    with pytest.raises(AanetError, match="describes raw images; it has no projection matrices"):
        parse_calibration(text, rectified=True)


def test_the_first_camera_must_be_the_left_one() -> None:
    swapped = dataclasses.replace(
        RADTAN, rotation=RADTAN.rotation.T, translation=-RADTAN.rotation.T @ RADTAN.translation
    )
    with pytest.raises(
        AanetError, match=r"0\.11.* m to the left of the first; the first must be the left one"
    ):
        parse_calibration(camchain(swapped))
