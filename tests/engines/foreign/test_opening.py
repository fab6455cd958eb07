"""Foreign networks from the file to the result: the child process, the cache, the matcher, the commands."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.data.motorcycle import motorcycle
from aanet.engines.foreign import inspection
from aanet.engines.foreign.inspection import inspect_file
from aanet.errors import AanetError, ReadError, UnsupportedError
from aanet.io.images import write_image
from aanet.matcher import StereoMatcher
from aanet.web.models import Catalog
from aanet.web.settings import Settings
from helpers.foreign_networks import SPEC, network, with_image
from helpers.matching_network import plane


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a network and its spec, a pair and a cache of its own."""
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "cache"))
    network().save(tmp_path / "blocks.onnx")
    (tmp_path / "blocks.toml").write_text(SPEC.to_toml())
    left, right = plane(64, 96, 6)
    write_image(tmp_path / "left.png", left)
    write_image(tmp_path / "right.png", right)
    return tmp_path


@pytest.mark.slow
def test_a_network_runs_through_predict_and_is_tried_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = [str(folder / "left.png"), str(folder / "right.png"), "--model", str(folder / "blocks.onnx")]
    arguments += ["-o", str(folder / "out"), "--save", "disparity.npy,confidence.npy", "--json"]
    result = CliRunner().invoke(app, ["predict", *arguments])
    assert result.exit_code == 0, result.output
    assert "foreign network" in json.loads(result.stdout)["engine"]
    disparity = np.load(next((folder / "out").glob("*disparity.npy")))
    np.testing.assert_allclose(disparity[16:-16, 20:-16], 6)

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("the cached inspection was not used")

    monkeypatch.setattr(subprocess, "run", forbidden)
    assert StereoMatcher(folder / "blocks.onnx").spec.name == "blocks"
    assert "is the spec right?" in caplog.text  # twelve disparities are too few for the Motorcycle
    damaged = next((folder / "cache" / "foreign").glob("*.json"))
    damaged.write_text("{}")
    with pytest.raises(AssertionError, match="was not used"):
        StereoMatcher(folder / "blocks.onnx")


@pytest.mark.slow
def test_inspect_tells_what_it_found_and_writes_the_spec(folder: Path) -> None:
    file, output = str(folder / "blocks.onnx"), folder / "found.toml"
    result = CliRunner().invoke(app, ["inspect", file, "-o", str(output)])
    assert result.exit_code == 0, result.output
    for words in (
        "ONNX, by tests, opset 13",
        "left: float32",
        "Motorcycle",
        "[[input]]",
        f"Written to {output}",
    ):
        assert words in result.stdout
    assert output.read_text() == SPEC.to_toml()
    again = CliRunner().invoke(app, ["inspect", file, "-o", str(output)])
    assert isinstance(again.exception, AanetError)
    found = json.loads(CliRunner().invoke(app, ["inspect", file, "--json"]).stdout)
    assert found["spec"] == SPEC.to_table()
    assert found["inputs"][0]["name"] == "left"
    assert found["tried"][0]["error"] > 0


@pytest.mark.slow
def test_inspect_says_what_is_open(folder: Path) -> None:
    path = network(strict=False).save(folder / "open.onnx")
    result = CliRunner().invoke(app, ["inspect", str(path), "--json"])
    assert isinstance(result.exception, UnsupportedError)
    assert "open is not recognized" in str(result.exception)
    assert json.loads(result.stdout)["spec"] is None


@pytest.mark.slow
def test_what_kills_the_child_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, path = subprocess.run, folder / "blocks.onnx"

    def replace_child_by(program: str) -> None:
        def run_other(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
            return real([command[0], "-c", program], **options)

        monkeypatch.setattr(inspection.subprocess, "run", run_other)

    for program, message in {
        "import os; os.abort()": "ended with SIGABRT",
        "print('hello')": "ended with exit code 0",
        "print('{}')": "ended with exit code 0",
        'print(\'{"error": "It is wrong."}\')': "It is wrong",
        'print(\'{"digest": "other"}\')': "was changed while it was read",
    }.items():
        replace_child_by(program)
        with pytest.raises(AanetError, match=message):
            inspect_file(path, None)
    monkeypatch.setattr(inspection, "SECONDS", 0.2)
    replace_child_by("import time; time.sleep(60)")
    with pytest.raises(ReadError, match="could not be tried within"):
        inspect_file(path, None)


@pytest.mark.slow
def test_a_network_that_takes_all_memory_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "_memory_limit", lambda: 1_000_000_000)
    made = network()
    shape = onnx.helper.make_tensor("shape", onnx.TensorProto.INT64, [2], [100_000, 100_000])
    made.model.graph.initializer.append(shape)
    nodes = [
        onnx.helper.make_node("ConstantOfShape", ["shape"], ["huge"]),
        onnx.helper.make_node("ReduceMax", ["huge"], ["most"], keepdims=0),
        onnx.helper.make_node("Add", ["disparity", "most"], ["total"]),
    ]
    made.model.graph.node.extend(nodes)
    made.model.graph.output[0].name = "total"
    with pytest.raises(AanetError) as caught:
        StereoMatcher(made.save(folder / "huge.onnx"))
    assert len(str(caught.value)) < 500


def test_options_that_do_not_fit_are_refused(folder: Path) -> None:
    with pytest.raises(UnsupportedError, match="leave it out for this model"):
        StereoMatcher("sgbm", network_spec="hitnet_eth3d")
    with pytest.raises(UnsupportedError, match="contains its weights and runs on the cpu"):
        StereoMatcher(folder / "blocks.onnx", device="cuda")
    with pytest.raises(UnsupportedError, match="contains its weights"):
        StereoMatcher(folder / "blocks.onnx", weights="random")


@pytest.mark.slow
@pytest.mark.parametrize("isolate", [False, True])
def test_a_server_serves_it_with_the_given_spec(isolate: bool, folder: Path) -> None:
    other = network(with_image(range=(0.0, 255.0)))
    path, spec = other.save(folder / "served.onnx"), folder / "given.toml"
    spec.write_text(other.spec.to_toml())
    catalog = Catalog(Settings(models=(str(path), "sgbm"), network_spec=str(spec), isolate=isolate))
    assert catalog.default.name == "served"
    assert catalog.default.facts is not None
    assert "foreign network" in catalog.default.facts.engine
    assert catalog.default.facts.max_disparity == SPEC.max_disparity
    catalog.find("sgbm").open()
    catalog.stop()
    catalog.close()


@pytest.fixture
def hitnet(real_data: Path) -> Path:
    """HITNet's network for ETH3D, which is not part of this project."""
    path = real_data.parent / "reference" / "hitnet" / "eth3d.pb"
    if not path.is_file():
        pytest.skip("HITNet is not there")
    return path


@pytest.mark.slow
def test_hitnet_is_recognized_and_runs(hitnet: Path, folder: Path) -> None:
    matcher = StereoMatcher(hitnet)
    assert matcher.spec.name == "hitnet_eth3d"
    assert matcher.spec.max_disparity == 128
    pair = motorcycle()
    result = matcher(pair.left, pair.right)
    errors = np.abs(result.disparity - pair.disparity)[pair.valid]
    assert errors.mean() < 0.9  # TensorFlow's own arithmetic gives the same
    confident = np.argsort(-result.confidence[pair.valid])[: len(errors) // 2]
    assert errors[confident].mean() < 0.5 * errors.mean()
    assert (folder / "cache" / "foreign").is_dir()
    unknown = inspect_file(hitnet, {})[1]
    assert unknown.spec is None  # it is almost as good with images in −1 … 1
    assert "give image.range" in unknown.problem
    known = inspect_file(hitnet, {"image": {"range": [0.0, 1.0]}})[1]
    assert known.spec is not None
    expected = replace(matcher.engine.foreign, max_disparity=None)  # type: ignore[attr-defined]
    assert (known.spec.inputs, known.spec.output) == (expected.inputs, expected.output)
