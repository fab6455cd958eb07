"""The API gives what the matcher gives, in every format."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from aanet import outputs
from aanet.geometry.calibration import parse_calibration
from aanet.io.depth import read_depth
from aanet.io.disparity import read_disparity
from aanet.io.images import decode_image
from aanet.io.points import read_ply
from aanet.matcher import StereoMatcher
from aanet.result import StereoResult
from aanet.web.formats import Summary
from helpers.server import Server

DISPARITIES = [f"disparity{each.suffix}" for each in outputs.OUTPUTS["disparity"].types]


@pytest.fixture(scope="module")
def expected(small_pair: dict[str, bytes]) -> StereoResult:
    left, right = (decode_image(small_pair[side], side) for side in ("left", "right"))
    return StereoMatcher("sgbm")(left, right, calibration=parse_calibration(small_pair["calib"]), check=True)


@pytest.mark.parametrize("wanted", DISPARITIES)
def test_disparity_is_that_of_the_matcher(
    server: Server, small_pair: dict[str, bytes], expected: StereoResult, tmp_path: Path, wanted: str
) -> None:
    response = server.match(small_pair, format=wanted, model="sgbm")
    assert response.status_code == 200, response.text
    path = tmp_path / wanted
    path.write_bytes(response.content)
    tolerance = 1 / 256 if path.suffix == ".png" else 0
    assert np.allclose(read_disparity(path), expected.disparity, rtol=0, atol=tolerance)


def test_headers_carry_warnings_camera_and_timing(server: Server, small_pair: dict[str, bytes]) -> None:
    response = server.match({**small_pair, "right": small_pair["left"]})
    assert "same" in json.loads(response.headers["Aanet-Warnings"])[0]
    assert json.loads(response.headers["Aanet-Camera"])["baseline_m"] == 0.193001
    assert response.headers["Aanet-Model"] == "sgbm"
    assert [part.split(";")[0] for part in response.headers["Server-Timing"].split(", ")] == [
        *("queue", "decode", "match", "encode")
    ]


def test_npz_has_everything(server: Server, small_pair: dict[str, bytes], expected: StereoResult) -> None:
    arrays = np.load(io.BytesIO(server.match(small_pair, format="arrays", check=True).content))
    for name in ("disparity", "confidence", "left", "occlusion", "right_disparity"):
        assert np.array_equal(arrays[name], getattr(expected, name)), name


def test_depth_points_and_summary(
    server: Server, small_pair: dict[str, bytes], expected: StereoResult, tmp_path: Path
) -> None:
    for wanted, name in (("depth", "d.png"), ("ply", "p.ply")):
        (tmp_path / name).write_bytes(server.match(small_pair, format=wanted).content)
    assert np.allclose(read_depth(tmp_path / "d.png"), expected.depth(), atol=6e-4)
    points, colors = read_ply(tmp_path / "p.ply")
    expected_points, expected_colors = expected.cloud()
    assert np.allclose(points, expected_points)
    assert np.array_equal(colors, expected_colors)
    summary = server.match(small_pair, format="summary", check=True).json()
    assert Summary.model_validate(summary).model_dump() == summary
    assert summary["disparity_px"]["median"] == pytest.approx(float(np.median(expected.disparity)))
    assert summary["occluded_share"] == pytest.approx(float(expected.occlusion.mean()))
    assert summary["depth_m"]["minimum"] == pytest.approx(float(np.nanmin(expected.depth())))


@pytest.mark.parametrize("wanted", outputs.spellings())
def test_every_format_is_answered_as_documented(
    server: Server, small_pair: dict[str, bytes], wanted: str
) -> None:
    response = server.match(small_pair, format=wanted, check=True)
    assert response.status_code == 200, response.text
    document = server.get("/api/v1/openapi.json").json()
    documented = document["paths"]["/api/v1/disparity"]["post"]["responses"]["200"]["content"]
    assert response.headers["content-type"] in documented
    if response.headers["content-type"] == "image/png":
        assert decode_image(response.content, wanted).size


def test_scale_and_range_reach_the_matcher(server: Server, small_pair: dict[str, bytes]) -> None:
    short = np.load(io.BytesIO(server.match(small_pair, format="disparity.npy", max_disparity=16).content))
    assert short.max() <= 16
    half = np.load(io.BytesIO(server.match(small_pair, format="disparity.npy", scale=0.5).content))
    full = np.load(io.BytesIO(server.match(small_pair, format="disparity.npy").content))
    assert half.shape == full.shape
    assert abs(np.median(half) - np.median(full)) < 1.5
    assert not np.array_equal(half, full)


def test_a_raw_pair_is_rectified(server: Server, small_pair: dict[str, bytes]) -> None:
    matrix = "!!opencv-matrix\n   rows: {}\n   cols: {}\n   dt: d\n   data: [ {} ]\n"
    lens = matrix.format(3, 3, "300., 0., 100., 0., 300., 60., 0., 0., 1.")
    fields = {
        "M1": lens,
        "M2": lens,
        **{name: matrix.format(1, 5, "0., 0., 0., 0., 0.") for name in ("D1", "D2")},
        "R": matrix.format(3, 3, "1., 0., 0., 0., 1., 0., 0., 0., 1."),
        "T": matrix.format(3, 1, "-0.1, 0., 0."),
    }
    text = "%YAML:1.0\n---\n" + "".join(f"{name}: {value}" for name, value in fields.items())
    response = server.match({**small_pair, "calib": text.encode()}, format="summary")
    assert response.status_code == 200, response.text
    assert response.json()["camera"]["baseline_m"] == pytest.approx(0.1)


def test_models_probes_and_metrics(server: Server, small_pair: dict[str, bytes]) -> None:
    (model,) = server.get("/api/v1/models").json()["models"]
    assert (model["name"], model["default"], model["max_disparity"]) == ("sgbm", True, 192)
    assert (model["upscale_to"], model["max_upscale"]) == (0, 1.5)
    for prefix in ("", "/api/v1"):
        assert server.get(f"{prefix}/healthz").json() == {"status": "ok"}
        assert server.get(f"{prefix}/readyz").json() == {"status": "ready"}
    before = responses_with_200(server)
    server.match(small_pair)
    assert responses_with_200(server) == before + 1
    assert 'aanet_match_seconds_count{model="sgbm"}' in server.get("/metrics").text


def responses_with_200(server: Server) -> float:
    lines = server.get("/api/v1/metrics").text.splitlines()
    return sum(
        float(line.split()[1])
        for line in lines
        if line.startswith('aanet_responses_total{method="POST",status="200"')
    )


def test_every_parameter_has_a_description_and_an_example(server: Server) -> None:
    document = server.get("/api/v1/openapi.json").json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path
            assert operation["description"], path
            for parameter in operation.get("parameters", []):
                assert parameter["description"], parameter
                assert parameter["schema"].get("examples"), parameter
