"""Calibrations over HTTP: two files, units, and options under the names of the API."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.io.images import decode_image, encode_image
from aanet.web.errors import ServiceError
from aanet.web.uploads import CalibrationOptions, UploadedPair, read_pair
from helpers.calibrations import BASELINE_M, RAW, stereo_entries, storage
from helpers.matching_network import textured_scene
from helpers.server import Server

LENSES = ("M1", "D1", "M2", "D2")


def parts(width: int = 640, height: int = 480, units_per_meter: float = 1.0) -> dict[str, bytes]:
    """A pair with the two files of OpenCV's sample, which state no image size."""
    entries = stereo_entries(RAW, units_per_meter)
    return {
        "left": encode_image(textured_scene(height, width), ".png"),
        "right": encode_image(textured_scene(height, width, 1), ".png"),
        "calib": storage({key: entries[key] for key in LENSES}),
        "calib_right": storage({key: value for key, value in entries.items() if key not in LENSES}),
    }


def read(content: dict[str, bytes], **options: object) -> UploadedPair:
    return read_pair(content, 10**6, CalibrationOptions(**options))


def test_two_files_take_their_size_from_the_images_and_their_unit_from_the_query() -> None:
    for units_per_meter, unit in ((1.0, None), (1000.0, "mm"), (100.0, "cm")):
        calibration = read(parts(units_per_meter=units_per_meter), unit=unit).calibration
        assert calibration is not None
        assert not calibration.is_rectified
        assert calibration.camera.baseline_m == pytest.approx(BASELINE_M)
        assert (calibration.camera.width, calibration.camera.height) == (640, 480)
    rectified = read(parts(), rectified=True).calibration
    assert rectified is not None
    assert rectified.is_rectified


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"calib_right": b""}, {}, "if they are in a second file, give it too, the part calib_right."),
        ({"calib": parts()["calib_right"], "calib_right": b""}, {}, "give rectified=true in the first case"),
        (parts(units_per_meter=1000.0), {}, "110.1 m in m; give the unit, unit=mm, cm or m."),
        ({"calib": b""}, {}, "need a calibration (the part calib)"),
        ({"calib": b"", "calib_right": b""}, {"unit": "mm"}, "need a calibration (the part calib)"),
    ],
)
def test_messages_name_the_options_of_the_api(
    changes: dict[str, bytes], options: dict[str, object], words: str
) -> None:
    with pytest.raises(ServiceError) as refusal:
        read({**parts(), **changes}, **options)
    assert refusal.value.status == 422
    assert words in refusal.value.message


def test_images_of_another_size_are_scaled_if_asked(small_pair: dict[str, bytes]) -> None:
    left, right = (decode_image(small_pair[side], side) for side in ("left", "right"))
    halves = {
        "left": encode_image(np.ascontiguousarray(left[::2, ::2]), ".png"),
        "right": encode_image(np.ascontiguousarray(right[::2, ::2]), ".png"),
        "calib": small_pair["calib"],
    }
    with pytest.raises(
        ServiceError, match=r"200×120 pixels; these have 100×60.*not cropped, give resized=true"
    ):
        read(halves)
    calibration = read(halves, resized=True).calibration
    assert calibration is not None
    assert calibration.camera.width == 100


def test_the_server_rectifies_and_sends_the_rectified_pair(server: Server) -> None:
    pair = parts(160, 120, units_per_meter=1000.0)
    summary = server.match(pair, format="summary", unit="mm")
    assert summary.status_code == 200, summary.text
    assert summary.json()["camera"]["baseline_m"] == pytest.approx(BASELINE_M)
    sent = decode_image(server.match(pair, format="right", unit="mm").content, "right")
    given = decode_image(pair["right"], "right")
    assert sent.shape == given.shape
    assert not np.array_equal(sent, given)
    as_it_is = server.match(pair, format="right", unit="mm", rectified=True).content
    np.testing.assert_array_equal(decode_image(as_it_is, "right"), given)
    assert server.match(pair, unit="inch").json()["code"] == "wrong_parameter"
