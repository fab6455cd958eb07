from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.models import zoo
from aanet.models.network import Architecture, StereoNetwork
from aanet.models.weights import checkpoint, official

run = CliRunner().invoke


def authors_file(path: Path, name: str, training_heads: bool, max_disparity: int) -> StereoNetwork:
    """A checkpoint as the authors write it, with `module.` before every key."""
    network = zoo.build(name, max_disparity, training_heads)
    ours_to_theirs = {
        ours: theirs for theirs, ours in official.layout_of(name, max_disparity, training_heads).keys.items()
    }
    state = {f"module.{ours_to_theirs[key]}": value for key, value in network.state_dict().items()}
    torch.save({"epoch": 3, "state_dict": state}, path)
    return network


@pytest.mark.slow
def test_an_authors_file_becomes_ours_without_heads(tmp_path: Path) -> None:
    network = authors_file(tmp_path / "aanet_kitti15-01234567.pth", "aanet", True, 48)
    result = run(app, ["convert", str(tmp_path / "aanet_kitti15-01234567.pth")])
    assert result.exit_code == 0, result.output
    assert "AANet, disparities below 48, " in result.output
    converted = checkpoint.read(tmp_path / "aanet_kitti15-01234567.safetensors")
    assert converted.architecture == Architecture("aanet", 48, False)
    for key, value in converted.state.items():
        assert torch.equal(value, network.state_dict()[key])


def test_heads_are_kept_on_request_and_half_is_smaller(tmp_path: Path) -> None:
    source = tmp_path / "a.pth"
    authors_file(source, "stereonet_aa", False, 32)
    run(app, ["convert", str(source), "-o", str(tmp_path / "full.safetensors"), "--heads"])
    run(app, ["convert", str(source), "-o", str(tmp_path / "half.safetensors"), "--half"])
    full, half = (tmp_path / f"{name}.safetensors" for name in ("full", "half"))
    assert half.stat().st_size < 0.65 * full.stat().st_size


def test_an_existing_file_is_not_replaced_unasked(tmp_path: Path) -> None:
    source, target = tmp_path / "a.pth", tmp_path / "a.safetensors"
    authors_file(source, "stereonet_aa", False, 32)
    target.write_text("precious")
    result = run(app, ["convert", str(source)])
    assert "already exists" in str(result.exception)
    assert target.read_text() == "precious"
    assert run(app, ["convert", str(source), "--overwrite"]).exit_code == 0
    assert checkpoint.read(target).architecture.builder == "stereonet_aa"
