"""`aanet study ablation` at toy size: it trains, scores, draws and writes what its help promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli import study_ablation
from aanet.cli.main import app
from aanet.errors import InputError
from aanet.evaluation.evaluate import Matcher
from aanet.io.images import read_image
from aanet.matcher import StereoMatcher
from aanet.training.ablation import NETWORKS

RECIPE = """
[network]
name = "aanet"
max_disparity = 48
initialization = "matching"
[[data]]
name = "synthetic"
size = [48, 96]
[[stage]]
name = "features"
trains = "features"
crop = [48, 96]
batch = 1
steps = 1
learning_rate = 1e-3
[[stage]]
name = "aggregation"
trains = "aggregation"
crop = [48, 96]
scene_disparity = 24
batch = 1
steps = 1
learning_rate = 1e-3
[run]
accelerator = "cpu"
workers = 0
ema_decay = 0.5
picture_steps = 0
"""


def on_torch(path: Path) -> Matcher:
    """The network alone, without a conversion that takes longer than the test."""
    matcher = StereoMatcher(path, engine="torch")
    return lambda left, right: matcher(left, right, scale=1.0, postprocess="none", inspect=False)


@pytest.mark.slow
@pytest.mark.extended
def test_the_study_writes_tables_weights_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_ablation, "_matcher", on_torch)
    monkeypatch.setattr(study_ablation, "HELD_OUT_SIZE", (48, 96))
    recipe, folder = tmp_path / "small.toml", tmp_path / "study"
    recipe.write_text(RECIPE)
    command = ["study", "ablation", "--recipe", str(recipe), "-o", str(folder), "--scenes", "2"]
    first = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False)
    assert first.exit_code == 0, first.output
    values = json.loads(first.stdout)
    networks = values["sets"]["held-out scenes"]["networks"]
    assert set(networks) == set(NETWORKS)
    assert all(scores["epe"] > 0 for scores in networks.values())
    assert json.loads((folder / "ablation.json").read_text()) == values
    assert "| w/o ISA & CSA |" in (folder / "ablation.md").read_text()
    assert read_image(folder / "ablation-held-out-scenes.png").ndim == 3
    assert all((folder / f"{name}.safetensors").is_file() for name in NETWORKS)
    again = CliRunner().invoke(app, command, catch_exceptions=False)  # scores what is trained
    assert "w/o ISA & CSA" in again.stdout


def test_data_without_a_folder_is_refused_before_training(tmp_path: Path) -> None:
    recipe = tmp_path / "small.toml"
    recipe.write_text(RECIPE)
    command = ["study", "ablation", "--recipe", str(recipe), "-o", str(tmp_path / "o"), "--data", "kitti2015"]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, InputError)
    assert "DATASET=FOLDER" in str(result.exception)
    assert not (tmp_path / "o").exists()
