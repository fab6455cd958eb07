"""`aanet pseudo-label`: its options reach the matcher, and its output says what was done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from aanet.cli.pseudo_label import pseudo_label
from aanet.errors import AanetError
from aanet.inference.hints import InferenceHints
from helpers import layouts
from helpers.fake_engine import FakeEngine

app = typer.Typer()
app.command()(pseudo_label)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine(3.0, hints=InferenceHints(upscale_to=50, fill_border=True))
    fake.options = {}

    def open_engine(model: str, **options: object) -> FakeEngine:
        fake.options = {"model": model, **options}
        return fake

    monkeypatch.setattr("aanet.matcher.open_engine", open_engine)
    return fake


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return layouts.kitti2015(tmp_path)


def test_the_options_of_predict_reach_the_matcher(engine: FakeEngine, root: Path) -> None:
    options = "--model sgbm --engine torch --precision float32 --device cpu --threads 3 --max-disparity 64"
    ways = "--scale 0.5 --postprocess none --tile none --json"
    result = CliRunner().invoke(app, ["kitti2015", str(root), *options.split(), *ways.split()])
    assert result.exit_code == 0, result.output
    assert engine.options == {
        "model": "sgbm",
        "weights": None,
        "engine": "torch",
        "precision": "float32",
        "max_disparity": 64,
        "device": "cpu",
        "threads": 3,
        "network_spec": None,
    }
    assert engine.shapes == [(1, 3, 12, 20)] * (2 * 2)  # both views of the two pairs of the split train
    facts = json.loads(result.stdout)
    assert facts["origin"]["postprocess"] == "none"
    assert {label["processing"]["scale"] for label in facts["maps"]} == {0.5}
    assert not any(label["processing"]["fill_border"] for label in facts["maps"])


def test_what_was_done_is_printed(engine: FakeEngine, root: Path) -> None:
    result = CliRunner().invoke(app, ["kitti2015", str(root), "--model", "sgbm"])
    assert result.exit_code == 0, result.output
    assert engine.shapes[0] == (1, 3, 30, 50)
    assert "enlarged to it, at most 1.5 times (resized by 1.25)" in result.stdout
    assert "--postprocess auto: left border filled" in result.stdout


@pytest.mark.usefixtures("engine")
def test_a_wrong_option_is_one_sentence(root: Path) -> None:
    result = CliRunner().invoke(app, ["kitti2015", str(root), "--tile", "wide"])
    assert isinstance(result.exception, AanetError)
    assert "The tile must be auto" in str(result.exception)
    assert not (root / "training/disp_pseudo_0").exists()
