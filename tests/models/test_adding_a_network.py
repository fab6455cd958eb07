"""A network is added in one place, and everything that lists or uses networks has it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.benchmark.presets import paper_networks
from aanet.cli.main import app
from aanet.engines.factory import open_engine
from aanet.errors import AanetError, UnsupportedError
from aanet.export.torch_export import ProgramEngine
from aanet.inference.tiling import bytes_per_pixel, tile_for
from aanet.matcher import StereoMatcher
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.models.zoo import adaptive
from aanet.models.zoo.card import Card
from helpers.matching_network import plane

HUNGRY = 123_456  # bytes per pixel, unlike any other network


def build_toy(max_disparity: int, training_heads: bool) -> StereoNetwork:
    network = adaptive.stereonet_aa(max_disparity, training_heads)
    network.architecture = replace(network.architecture, builder="toy")
    return network


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Card:
    card = Card(
        title="Toy",
        build=build_toy,
        summary="added by a test",
        when="never",
        bytes_per_pixel=HUNGRY,
        correlates=False,
        dynamic_shapes=False,
        replaces="stereonet",
        in_paper=False,
    )
    # Alone with what it replaces, so that commands over all networks are quick.
    monkeypatch.setattr(zoo, "NETWORKS", {"toy": card, "stereonet": zoo.card("stereonet")})
    return card


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
def test_it_is_listed() -> None:
    rows = json.loads(run("models", "--json", "--height", 64, "--width", 96))
    assert [row["name"] for row in rows] == ["toy", "stereonet"]
    assert rows[0]["title"] == "Toy"
    assert "toy" in run("models", "--height", 64, "--width", 96)
    with pytest.raises(AanetError, match="the networks are: toy, stereonet"):
        zoo.build("toi")


def test_its_own_memory_figure_decides_the_tiles() -> None:
    matcher = StereoMatcher("toy", weights="random", engine="torch", max_disparity=24, device="cpu")
    assert bytes_per_pixel(matcher.spec, width=10_000) == HUNGRY
    assert tile_for(matcher.spec, 1000, 1000, 3 * HUNGRY * 1000 * 1000) is None
    assert tile_for(matcher.spec, 1000, 1000, HUNGRY * 1000 * 1000) is not None


def test_it_matches_and_its_weights_are_found_again(tmp_path: Path) -> None:
    checkpoint.save(zoo.build("toy", 24, seed=0), tmp_path / "toy.safetensors")
    engine = open_engine(tmp_path / "toy.safetensors", engine="torch", device="cpu")
    result = StereoMatcher.with_engine(engine)(*plane(16, 32, 4), inspect=False)
    assert result.model == "toy"
    assert result.disparity.shape == (16, 32)
    with pytest.raises(UnsupportedError, match="trained for disparities below 24 pixels"):
        checkpoint.load(tmp_path / "toy.safetensors", max_disparity=48)


def test_it_is_measured() -> None:
    size = ("--height", 64, "--width", 96)
    measured = json.loads(
        run("benchmark", "toy", "--engines", "torch", *size, "--rounds", 1, "--no-memory", "--json")
    )
    assert [row["network"] for row in measured["measurements"]] == ["toy"]
    assert paper_networks() == ["stereonet", "toy"]


@pytest.mark.slow
def test_it_is_exported_with_its_figures(tmp_path: Path) -> None:
    target = tmp_path / "toy.pt2"
    command = ("export", "toy", "--random-weights", "--max-disparity", 24, "-o", target)
    with pytest.raises(UnsupportedError, match="toy can only be exported for a fixed image size"):
        run(*command)
    report = json.loads(run(*command, "--height", 32, "--width", 48, "--json"))
    assert report["description"]["network"] == "toy"
    assert ProgramEngine(target).spec.bytes_per_pixel == HUNGRY
