from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.io.disparity import read_disparity
from aanet.io.images import write_image
from aanet.matcher import StereoMatcher

run = CliRunner().invoke
SMALL = ["export", "stereonet_aa", "--random-weights", "--max-disparity", "24"]


@pytest.mark.slow
def test_an_exported_file_predicts_like_the_network_with_nothing_else_to_say(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    result = run(app, [*SMALL, "-o", str(file), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["description"]["network"] == "stereonet_aa"
    assert report["description"]["weights"] == "random"
    assert report["parity"]["disparity"]["max_px"] <= 0.01
    assert report["bytes"] == sum(path.stat().st_size for path in tmp_path.iterdir())

    images = [np.random.default_rng(seed).integers(0, 256, (50, 70, 3), np.uint8) for seed in (0, 1)]
    for side, image in zip(("left", "right"), images, strict=True):
        write_image(tmp_path / f"{side}.png", image)
    pair = [str(tmp_path / "left.png"), str(tmp_path / "right.png")]
    out = tmp_path / "out"
    result = run(app, ["predict", *pair, "--model", str(file), "-o", str(out), "--save", "disparity.npy"])
    assert result.exit_code == 0, result.output
    (written,) = out.rglob("*disparity.npy")
    network = StereoMatcher("stereonet_aa", weights="random", max_disparity=24, engine="torch")
    np.testing.assert_allclose(read_disparity(written), network(*images).disparity, atol=0.01)


def test_the_report_says_sizes_difference_rounding_and_speeds(tmp_path: Path) -> None:
    sizes = ["--height", "16", "--width", "24"]
    result = run(app, [*SMALL, "-o", str(tmp_path / "model.xml"), *sizes, "--half"])
    assert result.exit_code == 0, result.output
    first, difference, rounding, speeds = result.stdout.strip().splitlines()
    assert "stereonet_aa for images of 16×24, disparities below 24" in first
    assert "Motorcycle, 16×24" in difference
    assert "float16" in rounding
    assert "ms with OpenVINO" in speeds
    assert "ms with PyTorch" in speeds


@pytest.mark.parametrize("name", ["psmnet", "aanett"])
def test_a_model_without_weights_is_answered_with_what_can_be_exported(name: str, tmp_path: Path) -> None:
    error = run(app, ["export", name, "-o", str(tmp_path / "model.xml")]).exception
    assert isinstance(error, AanetError)
    assert "a weight file" in str(error)
    assert "sgbm" not in str(error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--height", "16"], "--height and --width must be given together"),
        (["-o", "model.txt"], r"must be \.onnx or \.xml or \.pt2; got model\.txt"),
        (["--max-disparity", "25"], "must be a positive multiple of"),
        (["--max-disparity", "0"], "must be a positive multiple of"),
    ],
)
def test_what_cannot_be_had_is_said_in_a_sentence(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = run(app, [*SMALL, "-o", str(tmp_path / "model.xml"), *arguments])
    assert isinstance(result.exception, AanetError)
    with pytest.raises(AanetError, match=message):
        raise result.exception
    assert not list(tmp_path.iterdir())
