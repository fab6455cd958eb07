"""The results of OpenCV's stereoCalibrate under the names that people give them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aanet.errors import AanetError, InputError, OptionError, ReadError
from aanet.geometry.calibration import load_calibration, parse_calibration
from aanet.geometry.formats import reading, ros, stereo_keys
from aanet.geometry.rectification import Calibration
from helpers.calibrations import BASELINE_M, FISHEYE, RAW, SIZE, assert_rectifies, stereo_entries, storage

WHOLE = {**stereo_entries(), "image_width": 640, "image_height": 480}


def npz(entries: dict[str, Any], compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **entries)
    return buffer.getvalue()


def renamed(**names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in WHOLE.items()}


@pytest.mark.parametrize("suffix", [".yml", ".xml", ".json"])
def test_a_file_storage_rectifies(suffix: str) -> None:
    calibration = parse_calibration(storage(WHOLE, suffix))
    assert not calibration.is_rectified
    assert calibration.camera.baseline_m == pytest.approx(BASELINE_M)
    assert calibration.camera == Calibration(RAW).camera


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_opencvs_sample_writes_two_files_without_a_size(tmp_path: Path, order: tuple[int, int]) -> None:
    """intrinsics.yml and extrinsics.yml of stereo_calib.cpp; the size comes from the images."""
    entries = stereo_entries()
    intrinsics = {key: entries[key] for key in ("M1", "D1", "M2", "D2")}
    extrinsics = {key: entries[key] for key in ("R", "T", "R1", "R2", "P1", "P2", "Q")}
    files = [tmp_path / "intrinsics.yml", tmp_path / "extrinsics.yml"]
    for file, content in zip(files, (intrinsics, extrinsics), strict=True):
        file.write_bytes(storage(content))
    calibration = load_calibration(files[order[0]], files[order[1]])
    assert_rectifies(calibration, RAW)
    assert calibration.for_size(*SIZE).camera == Calibration(RAW).camera
    with pytest.raises(OptionError, match=r"no rotation and no translation.*second file.*right_path="):
        load_calibration(files[0])
    both = r"may be the calibration of rectified images, or the second half.*rectified=True.*right_path="
    with pytest.raises(OptionError, match=both):
        load_calibration(files[1])
    given = load_calibration(files[1], rectified=True)
    assert given.is_rectified
    assert given.for_size(*SIZE).camera == Calibration(RAW).camera


@pytest.mark.parametrize(
    "names",
    [
        {"M1": "K1", "M2": "K2"},
        {"M1": "cameraMatrixL", "D1": "distCoeffsL", "M2": "cameraMatrixR", "D2": "distCoeffsR"},
        {"M1": "cameraMatrixL", "D1": "cameraDistcoeffL", "M2": "cameraMatrixR", "D2": "cameraDistcoeffR"},
        {"M1": "mtxL", "D1": "distL", "M2": "mtxR", "D2": "distR"},
        {"M1": "mtx_left", "D1": "dist_left", "M2": "mtx_right", "D2": "dist_right", "T": "t"},
        {"M1": "camera_matrix_left", "D1": "dist_coeffs_left", "M2": "camera_matrix_right", "D2": "right_D"},
        {"M1": "left_camera_matrix", "D1": "left_distortion", "M2": "right_camera_matrix", "D2": "dist_r"},
        {"M1": "intrinsics1", "D1": "distortion1", "M2": "intrinsics2", "D2": "distortion2"},
    ],
)
def test_the_names_that_people_use_are_read(names: dict[str, str]) -> None:
    entries = renamed(**names)
    expected = Calibration(RAW).camera
    assert parse_calibration(storage(entries)).camera == expected
    assert parse_calibration(npz(entries)).camera == expected
    plain = {key: np.asarray(value).tolist() for key, value in entries.items()}
    assert parse_calibration(json.dumps(plain)).camera == expected
    yaml = "".join(f"{key}: {value}\n" for key, value in plain.items())
    assert parse_calibration(yaml).camera == expected


def test_an_npz_may_be_compressed_and_hold_other_things() -> None:
    entries = {key: value for key, value in WHOLE.items() if not key.startswith("image_")}
    entries |= {"imageSize": np.array(SIZE), "size": 25.0, "rms": 0.2, "names": np.array(["a", "b"])}
    entries |= {"objpoints": np.zeros((20, 54, 3), np.float32), "stereoMapL_x": np.zeros((480, 640, 2))}
    for compressed in (False, True):
        calibration = parse_calibration(npz(entries, compressed))
        assert calibration.camera == Calibration(RAW).camera
    fisheye = {**stereo_entries(FISHEYE), "distortion_model": "fisheye"}
    assert_rectifies(parse_calibration(npz(fisheye)), FISHEYE)


@pytest.mark.parametrize(
    "damage",
    [
        b"PK\x03\x04 not a zip",
        npz({"K1": np.array([{"a": 1}], dtype=object)}),
        npz({"K1": np.eye(3)})[:200],
        npz(WHOLE).replace(b"'shape': (3, 3)", b"'shape': (9, 9)"),
        npz(WHOLE).replace(b"<f8", b"<c8"),
        npz({**WHOLE, "M1": np.full((3, 3), np.nan)}),
        npz({**WHOLE, "image_width": np.full(2, 1e300)}),
        npz({**WHOLE, "M1": np.zeros(9)}),
        npz({}),
    ],
    ids=lambda data: f"{len(data)}-{data[:4]!r}",
)
def test_a_damaged_npz_is_one_sentence(damage: bytes) -> None:
    with pytest.raises(AanetError) as error:
        parse_calibration(damage).for_size(*SIZE)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("model", ["fisheye", "plumb_bob"])
@pytest.mark.parametrize("suffix", [".yml", ".xml", ".json"])
def test_a_file_states_its_distortion_model(model: str, suffix: str) -> None:
    """The file that `aanet calibrate` writes: K1, D1, …, Q, the size and the model."""
    raw = FISHEYE if model == "fisheye" else RAW
    entries = {{"M1": "K1", "M2": "K2"}.get(key, key): value for key, value in stereo_entries(raw).items()}
    text = storage({**entries, "image_width": 640, "image_height": 480, "distortion_model": model}, suffix)
    calibration = parse_calibration(text)
    assert calibration.camera == Calibration(raw).camera
    assert_rectifies(calibration, raw)
    assert parse_calibration(text, rectified=True).camera == calibration.camera


def test_four_coefficients_without_a_model_are_refused_with_both_meanings() -> None:
    entries = stereo_entries(FISHEYE)
    with pytest.raises(ReadError, match=r"may be k1, k2, p1, p2 of a pinhole camera or .* of a fisheye"):
        parse_calibration(storage(entries))
    stated = parse_calibration(storage({**entries, "distortion_model": "radtan"})).for_size(*SIZE).camera
    assert stated != Calibration(FISHEYE).camera
    zeros = {**entries, "D1": np.zeros((4, 1)), "D2": np.zeros((4, 1))}
    assert not parse_calibration(storage(zeros)).is_rectified
    with pytest.raises(ReadError, match="the distortion model 'omni' is not supported; known: plumb_bob"):
        parse_calibration(storage({**entries, "distortion_model": "omni"}))


@pytest.mark.parametrize(
    ("unit", "units_per_meter"), [("mm", 1000.0), ("cm", 100.0), ("m", 1.0), (None, 1.0)]
)
@pytest.mark.parametrize("rectified", [False, True])
def test_the_unit_is_that_of_the_squares(unit: str | None, units_per_meter: float, rectified: bool) -> None:
    text = storage({**WHOLE, **stereo_entries(RAW, units_per_meter)})
    camera = parse_calibration(text, unit=unit, rectified=rectified).camera
    assert camera.baseline_m == pytest.approx(BASELINE_M)


def test_a_file_may_state_its_unit() -> None:
    for unit, units_per_meter in (("millimeters", 1000.0), ("cm", 100.0), ("meters", 1.0)):
        text = storage({**WHOLE, **stereo_entries(RAW, units_per_meter), "units": unit})
        for rectified in (False, True):
            camera = parse_calibration(text, rectified=rectified).camera
            assert camera.baseline_m == pytest.approx(BASELINE_M)
    far = storage({**WHOLE, "T": 30 * WHOLE["T"], "units": "meters"})
    assert parse_calibration(far, unit="m").camera.baseline_m == pytest.approx(30 * BASELINE_M)
    with pytest.raises(InputError, match="states that its lengths are in m; the unit given is mm"):
        parse_calibration(far, unit="mm")


@pytest.mark.parametrize(
    ("units_per_meter", "words"),
    [
        (1000.0, r"is 110\.1, which is 0\.1101 m in mm, 1\.101 m in cm, 110\.1 m in m; give the unit, "),
        (
            100.0,
            r"is 11\.01, which is 0\.01101 m in mm, 0\.1101 m in cm, 11\.01 m in m; give the unit, ",
        ),
    ],
)
def test_a_doubtful_length_is_refused_with_all_meanings(units_per_meter: float, words: str) -> None:
    text = storage({**WHOLE, **stereo_entries(RAW, units_per_meter)})
    with pytest.raises(OptionError, match=words):
        parse_calibration(text)
    assert parse_calibration(text, unit="m").camera.baseline_m == pytest.approx(BASELINE_M * units_per_meter)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"K1": np.eye(3)},
            "Both K1 in The calibration and M1 in .* may be the left camera matrix",
        ),
        ({"translation": np.ones((3, 1))}, "Both T in .* and translation in .* may be the translation"),
        (
            {"P": np.ones((3, 4))},
            "may be the camera_info of one ROS camera or the result of OpenCV's",
        ),
        (
            {"P3": np.ones((3, 4))},
            "may be the projection matrices of KITTI or the result of OpenCV's",
        ),
        ({"R": np.eye(4)}, "expected 3×3 numbers in R; got 16"),
        ({"image_width": 640.5}, "1 to 32767 whole pixels; got 640.5"),
    ],
)
def test_a_file_that_could_mean_two_things_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AanetError, match=words):
        parse_calibration(storage({**WHOLE, **changes}))


def test_the_same_matrix_twice_is_no_contradiction() -> None:
    assert parse_calibration(storage({**WHOLE, "K1": RAW.left_matrix})).camera == Calibration(RAW).camera
    text = storage(WHOLE)
    assert parse_calibration(text, text).camera == Calibration(RAW).camera
    other = storage({**WHOLE, "image_width": 320, "image_height": 240})
    with pytest.raises(ReadError, match="different sizes, 320×240 and 640×480"):
        parse_calibration(text, other)


def test_what_is_missing_is_told_with_the_accepted_names() -> None:
    strange = {"newCameraMatrixL": np.eye(3), "D1": np.zeros(5), "R": np.eye(3), "T": np.ones(3)}
    with pytest.raises(ReadError) as error:
        parse_calibration(storage(strange))
    message = str(error.value)
    assert "left camera matrix, right camera matrix, right distortion missing" in message
    assert "K1, M1, mtxL, cameraMatrixL or camera_matrix_left" in message
    assert "it has newCameraMatrixL, D1, R, T." in message
    with pytest.raises(ReadError, match=r"\(P1 and P2\), which are missing; it has M1, D1"):
        parse_calibration(
            storage({key: WHOLE[key] for key in ("M1", "D1", "M2", "D2", "R", "T")}), rectified=True
        )


def test_all_keys_are_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "calibration.md").read_text(encoding="utf-8")
    names = {*stereo_keys._MATRIX, *stereo_keys._DISTORTION, *stereo_keys._PROJECTION}
    names |= {*stereo_keys.KEYS["rotation"], *stereo_keys.KEYS["translation"]}
    names |= {form.replace("{}", "") for form in (*stereo_keys._LEFT, *stereo_keys._RIGHT)}
    names |= {*reading.PINHOLE_MODELS, *reading.FISHEYE_MODELS, *reading._SIZES, *reading.UNIT_KEYS}
    names |= {*ros._MATRIX, *ros._DISTORTION, *ros._ROTATION, *ros._PROJECTION, *reading.UNITS}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []
