from __future__ import annotations

import dataclasses
import pickle

import cv2
import numpy as np
import pytest

from aanet.errors import AanetError, InputError, OptionError
from aanet.geometry.camera import StereoCamera
from aanet.geometry.rectification import Calibration, RawCalibration
from helpers.calibrations import BASELINE_M, FISHEYE, RAW, SIZE, assert_rectifies, rectify

MODELS = pytest.mark.parametrize("raw", [RAW, FISHEYE], ids=["pinhole", "fisheye"])


@MODELS
def test_rectified_points_lie_on_one_row_and_give_their_distance(raw: RawCalibration) -> None:
    assert_rectifies(Calibration(raw), raw)


def test_a_fisheye_is_not_a_pinhole_camera() -> None:
    with pytest.raises(AssertionError):
        assert_rectifies(Calibration(dataclasses.replace(FISHEYE, fisheye=False)), FISHEYE)


def test_a_fisheye_of_almost_180_degrees_is_rectified_to_120() -> None:
    """With such a lens, OpenCV finds a focal length of almost zero, or a negative one."""
    lens = np.array([[215.0, 0, 322], [0, 215, 238], [0, 0, 1]])
    wide = dataclasses.replace(
        FISHEYE,
        left_matrix=lens,
        right_matrix=lens,
        left_distortion=np.array([[-0.005], [0.04], [-0.038], [0.006]]),
        right_distortion=np.array([[-0.005], [0.04], [-0.038], [0.006]]),
    )
    calibration = Calibration(wide)
    assert calibration.camera.fx == pytest.approx(320 / np.tan(np.radians(60)))
    assert calibration.camera.baseline_m == pytest.approx(BASELINE_M)
    assert_rectifies(calibration, wide)


@MODELS
def test_a_given_rectification_is_kept(raw: RawCalibration) -> None:
    given = rectify(raw)
    smaller = np.diag([0.9, 0.9, 1.0])
    given = given._replace(
        left_projection=smaller @ given.left_projection, right_projection=smaller @ given.right_projection
    )
    calibration = Calibration(dataclasses.replace(raw, rectification=given))
    assert calibration.camera.fx == pytest.approx(given.left_projection[0, 0])
    assert calibration.camera.fx < 0.95 * Calibration(raw).camera.fx
    assert_rectifies(calibration, raw)


@MODELS
@pytest.mark.parametrize("given", [False, True], ids=["computed", "given"])
def test_a_calibration_is_scaled_to_resized_images(raw: RawCalibration, given: bool) -> None:
    raw = dataclasses.replace(raw, rectification=rectify(raw)) if given else raw
    rng = np.random.default_rng(0)
    pair = [
        cv2.GaussianBlur(rng.integers(0, 256, (480, 640), dtype=np.uint8), (0, 0), 6.0).astype(np.float32)
        for _ in range(2)
    ]
    whole = Calibration(raw)
    halves = [cv2.resize(image, (320, 240), interpolation=cv2.INTER_AREA) for image in pair]
    with pytest.raises(OptionError, match=r"640×480 pixels; these have 320×240; .*resized.*resized=True"):
        whole.rectify(*halves)
    scaled = Calibration(raw, resized=True)
    camera = scaled.for_size(320, 240).camera
    assert (camera.width, camera.height) == (320, 240)
    assert camera.baseline_m == pytest.approx(BASELINE_M)
    # OpenCV chooses the window of the rectified image anew, which differs by less than a percent.
    assert camera.fx == pytest.approx(whole.camera.fx / 2, rel=1e-9 if given else 0.01)
    if given:
        for mine, theirs in zip(scaled.rectify(*halves), whole.rectify(*pair), strict=True):
            shrunk = cv2.resize(theirs, (320, 240), interpolation=cv2.INTER_AREA)
            inside = np.s_[20:-20, 20:-20]
            assert np.abs(mine - shrunk)[inside].mean() < 0.15
    assert scaled.for_size(*SIZE).camera == whole.camera
    assert scaled.for_size(320, 240) is scaled.for_size(320, 240)


def test_only_images_of_the_same_shape_are_scaled() -> None:
    camera = StereoCamera(fx=700, cx=620, cy=187, baseline_m=0.5, width=1241, height=376)
    scaled = Calibration(camera, resized=True)
    assert scaled.for_size(620, 188).camera.fx == pytest.approx(700 * 620 / 1241)
    for calibration in (scaled, Calibration(camera)):
        with pytest.raises(InputError, match=r"for images of 1241×376 pixels; these have 620×376\."):
            calibration.for_size(620, 376)
    unsized = Calibration(dataclasses.replace(camera, width=None, height=None), resized=True)
    with pytest.raises(InputError, match="does not state its image size, so it cannot be resized"):
        unsized.for_size(620, 188)


def test_the_rectifier_keeps_type_and_channels_and_checks_the_size() -> None:
    calibration = Calibration(RAW)
    left, right = calibration.rectify(np.zeros((480, 640, 3), np.uint8), np.zeros((480, 640, 3), np.uint16))
    assert (left.shape, left.dtype, right.dtype) == ((480, 640, 3), np.uint8, np.uint16)
    with pytest.raises(AanetError, match="640×480 images; the right one has 320×240"):
        calibration.rectify(left, np.zeros((240, 320), np.uint8))


def test_cameras_that_stand_above_each_other_are_refused() -> None:
    upright = dataclasses.replace(RAW, translation=np.array([[0.0], [-0.1], [0.0]]))
    with pytest.raises(AanetError, match="side by side"):
        Calibration(upright)


@pytest.mark.parametrize("part", ["rotation", "left_matrix", "translation", "right_distortion"])
@pytest.mark.parametrize("value", [-0.5, np.nan, np.inf, 1e300])
def test_a_raw_calibration_is_checked(part: str, value: float) -> None:
    if value < 0 and part in ("right_distortion", "translation"):
        value = -1e7
    with pytest.raises(InputError):
        dataclasses.replace(RAW, **{part: np.full_like(getattr(RAW, part), value)})


def test_the_number_of_coefficients_is_that_of_the_model() -> None:
    with pytest.raises(InputError, match="of a fisheye camera has 4 coefficients; got 5"):
        dataclasses.replace(RAW, fisheye=True)
    with pytest.raises(InputError, match="pinhole camera has 4 or 5 or 8 or 12 or 14 coefficients; got 3"):
        dataclasses.replace(RAW, left_distortion=np.zeros((3, 1)))


def test_a_given_rotation_is_checked() -> None:
    given = rectify(RAW)._replace(right_rotation=np.full((3, 3), np.nan))
    with pytest.raises(InputError, match="not a rotation matrix"):
        dataclasses.replace(RAW, rectification=given)


@MODELS
def test_a_calibration_can_be_sent_to_another_process(raw: RawCalibration) -> None:
    calibration = Calibration(raw)
    pair = [np.random.default_rng(side).integers(0, 256, (480, 640), np.uint8) for side in (0, 1)]
    copy = pickle.loads(pickle.dumps(calibration))
    for mine, theirs in zip(copy.rectify(*pair), calibration.rectify(*pair), strict=True):
        np.testing.assert_array_equal(mine, theirs)
