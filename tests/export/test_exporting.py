"""What is refused, and what remains on the disk when an export fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from aanet.errors import AanetError, InputError, UnsupportedError
from aanet.export import exporting
from aanet.export.exporting import export_network
from aanet.export.parity import Difference, Parity
from aanet.export.sources import open_network
from aanet.inference.description import Description, parse
from aanet.inference.hints import InferenceHints
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import NetworkSpec
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from helpers.small_networks import build_small

SPEC = NetworkSpec("aanet", 192, 800, True, 3, SizeRule(12, 24))


@pytest.mark.parametrize(
    ("file", "options", "kind", "message"),
    [
        ("model.bin", {}, InputError, r"must be \.onnx or \.xml or \.pt2; got model\.bin"),
        ("model.onnx", {"file_format": "openvino"}, InputError, r"must be \.xml; got model\.onnx"),
        ("model.onnx", {"file_format": "tensorrt"}, InputError, "must be onnx or openvino or torch; got"),
        ("model.onnx", {"deform": "fast"}, InputError, "must be native or decomposed; got 'fast'"),
        ("model.xml", {"deform": "decomposed"}, UnsupportedError, "--deform applies to the format onnx only"),
        ("model.pt2", {"half": True}, UnsupportedError, "use the format onnx or openvino"),
        ("model.xml", {"size": (10, 16)}, AanetError, "multiples of 4 and at least 4, but got 10×16"),
    ],
)
def test_wrong_options_are_refused(
    file: str, options: dict[str, Any], kind: type[AanetError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        export_network(
            build_small("stereonet_aa", randomize=True), tmp_path / file, weights="random", **options
        )
    assert not list(tmp_path.iterdir())


def test_a_graph_that_depends_on_the_size_needs_one(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"ganet can only be exported for a fixed .*--height and"):
        export_network(build_small("ganet", randomize=True), tmp_path / "model.onnx", weights="random")
    assert not list(tmp_path.iterdir())


def test_a_file_that_differs_is_removed_and_an_older_one_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = exporting.simplify

    def with_an_error(network: StereoNetwork, half: bool = False) -> StereoNetwork:
        wrong = honest(network, half)
        with torch.no_grad():
            wrong.refinement.steps[-1].residual.bias += 0.02  # type: ignore[union-attr]  # StereoNet's
        return wrong

    monkeypatch.setattr(exporting, "simplify", with_an_error)
    (tmp_path / "model.xml").write_text("older")
    (tmp_path / "model.bin").write_text("weights")
    with pytest.raises(UnsupportedError, match=r"differs from PyTorch by up to 0\.02 pixels"):
        export_network(
            build_small("stereonet_aa", randomize=True),
            tmp_path / "model.xml",
            weights="random",
            size=(16, 16),
        )
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "model.xml": "older",
        "model.bin": "weights",
    }


@pytest.mark.parametrize(
    ("largest", "rounding", "message"),
    [
        (0.011, None, "by up to 0.011 pixels"),
        (float("nan"), None, "by up to nan pixels"),
        (0.001, 0.2, "changes the disparity by 0.2 pixels on average.*without --half"),
    ],
)
def test_parity_refuses(largest: float, rounding: float | None, message: str) -> None:
    rounded = None if rounding is None else Difference(9.0, rounding)
    with pytest.raises(AanetError, match=message):
        Parity("pair", Difference(largest, 0.0), 0.0, rounded, 1.0, 1.0).require()


def test_parity_accepts_single_pixels_that_rounding_moves() -> None:
    Parity("pair", Difference(0.0099, 0.001), 0.0, Difference(9.0, 0.05), 1.0, 1.0).require()


@pytest.mark.parametrize("size", [None, (48, 96)])
def test_a_description_is_read_back(size: tuple[int, int] | None) -> None:
    description = Description(SPEC, "sha256:12", size, "native", "float16")
    assert parse(description.properties(), Path("model.onnx")) == description


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": None}, "does not describe its network"),
        ({"format": "aanet-export-9"}, "has the format aanet-export-9; this version of aanet reads"),
        ({"network": None}, "is damaged: 'network'"),
        ({"max_disparity": "many"}, "is damaged: invalid literal"),
        ({"size": "48"}, "is damaged"),
    ],
)
def test_a_description_that_cannot_be_used_is_said_so(change: dict[str, str | None], message: str) -> None:
    properties = {**Description(SPEC, "random").properties(), **change}
    kept = {key: value for key, value in properties.items() if value is not None}
    with pytest.raises(AanetError, match=message):
        parse(kept, Path("model.onnx"))


def test_the_hash_of_the_weights_is_that_of_their_file(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "mine.safetensors"
    checkpoint.save(build_small("stereonet_aa", randomize=True), path, hints=InferenceHints(1100))
    network, digest, hints = open_network(path)
    assert hints == InferenceHints(1100)
    assert digest == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert network.max_disparity == 48
    with pytest.raises(UnsupportedError, match="contains weights of stereonet_aa, not of aanet"):
        open_network("aanet", path)
    assert open_network("stereonet_aa", "random", 24).weights == "random"


def test_a_file_upscales_small_images_as_its_weights_do_unless_it_is_for_one_size() -> None:
    spec = replace(SPEC, hints=InferenceHints(1100, sharpen_edges=True, fill_border=True))
    for size, upscale_to in ((None, 1100), ((48, 96), 0)):
        again = parse(Description(spec, "random", size).properties(), Path("model.onnx"))
        assert again.spec.hints == InferenceHints(upscale_to, sharpen_edges=True, fill_border=True)


@pytest.mark.parametrize("key", ["upscale_to", "bytes_per_pixel", "correlates", "minimum_size"])
def test_a_file_that_lacks_a_figure_is_refused_and_not_given_another_networks(key: str) -> None:
    properties = Description(SPEC, "random").properties()
    del properties[key]
    with pytest.raises(AanetError, match=f"description inside model.onnx is damaged: '{key}'"):
        parse(properties, Path("model.onnx"))
