"""An engine is added in one place, and everything that lists or uses engines has it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aanet.cli import options
from aanet.cli.main import app
from aanet.engines import table
from aanet.engines.factory import open_engine
from aanet.engines.table import EngineCard, FileReader, Options
from aanet.engines.torch import TorchEngine
from aanet.errors import AanetError, InputError, MissingExtraError, UnsupportedError
from aanet.inference.description import Description
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from helpers.matching_network import plane
from helpers.small_networks import build_small


class ToyEngine(TorchEngine):
    """Computes as torch does, under another name."""

    name = "toy"

    def __init__(self, network: StereoNetwork) -> None:
        super().__init__(network, "cpu")
        self.description = "toy"


def from_weights(path: Path, options: Options) -> ToyEngine:
    return ToyEngine(checkpoint.load(path, False, options.max_disparity))


def from_file(_path: Path, _options: Options) -> tuple[ToyEngine, Description]:
    engine = ToyEngine(build_small("stereonet_aa", 24))
    return engine, Description(engine.spec, "random")


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    before = dict(table.ENGINES)
    card = EngineCard(
        package="numpy",
        from_weights=from_weights,
        from_network=lambda network, _: ToyEngine(network),
        reads={".toy": FileReader(from_file)},
    )
    del table.ENGINES["openvino"]  # its conversions take seconds
    table.ENGINES["toy"] = card
    yield
    # Emptied first: the order of the table is the order in which engines are tried.
    table.ENGINES.clear()
    table.ENGINES.update(before)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_opens_networks_weights_and_its_own_files(tmp_path: Path) -> None:
    network = build_small("stereonet_aa", 24)
    checkpoint.save(network, tmp_path / "net.safetensors")
    (tmp_path / "net.toy").touch()
    assert open_engine(network, engine="toy").name == "toy"
    assert open_engine(tmp_path / "net.safetensors", engine="toy").name == "toy"
    assert open_engine(tmp_path / "net.toy").name == "toy"


def test_errors_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="The engine must be torch or onnxruntime or toy; got 'toi'"):
        open_engine("stereonet_aa", engine="toi")
    with pytest.raises(UnsupportedError, match="toy runs on the cpu; for the device cuda use torch"):
        open_engine("stereonet_aa", weights="random", engine="toy", device="cuda")
    monkeypatch.setitem(table.ENGINES, "toy", EngineCard(package="no_such_package", extra="toys"))
    with pytest.raises(MissingExtraError, match=r"needs the package no_such_package.*'aanet\[toys\]'"):
        open_engine("stereonet_aa", engine="toy")


@pytest.mark.parametrize("name", ["predict", "evaluate", "benchmark"])
def test_help_texts_name_it(name: str) -> None:
    importlib.reload(options)
    module = importlib.import_module(f"aanet.cli.{name}")
    help_app = typer.Typer()
    help_app.command()(getattr(importlib.reload(module), name))
    shown = CliRunner().invoke(help_app, ["--help"], env={"COLUMNS": "200"}).stdout
    assert "toy" in shown


def test_predict_uses_it(tmp_path: Path) -> None:
    checkpoint.save(build_small("stereonet_aa", 24), tmp_path / "net.safetensors")
    for side, image in zip(("left", "right"), plane(32, 64, 4), strict=True):
        cv2.imwrite(str(tmp_path / f"{side}.png"), image)
    pair = (tmp_path / "left.png", tmp_path / "right.png")
    model = ("--model", tmp_path / "net.safetensors", "--engine", "toy")
    assert json.loads(run("predict", *pair, *model, "-o", tmp_path / "out", "--json"))["engine"] == "toy"


def test_benchmark_measures_it() -> None:
    size = ("--height", 16, "--width", 32)
    measured = json.loads(
        run("benchmark", "stereonet_aa", "--engines", "toy", *size, "--rounds", 1, "--no-memory", "--json")
    )
    assert [row["engine"] for row in measured["measurements"]] == ["toy"]
    with pytest.raises(AanetError, match="there are: baseline, torch, torch-bf16, toy"):
        run("benchmark", "stereonet_aa", "--engines", "toi", *size)


@pytest.mark.slow
def test_doctor_lists_it_and_holds_it_against_torch() -> None:
    sections = json.loads(run("doctor", "--json"))
    found = {finding["what"]: finding for findings in sections.values() for finding in findings}
    assert "toy" in found
    assert found["toy and torch"]["ok"] is True
    assert np.isclose(float(found["toy and torch"]["found"].split()[-2]), 0)
