"""Recognizing networks by trying: right under one reading, ambiguous, and hopeless."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aanet.engines.foreign import recognition
from aanet.engines.foreign.files import read_network_file
from aanet.engines.foreign.recognition import Recognition, recognize
from aanet.engines.foreign.running import Runner, open_runner
from aanet.engines.foreign.spec import ForeignSpec, InputSpec, OutputSpec, SizeSpec, Table
from aanet.engines.table import Options
from aanet.errors import UnsupportedError
from helpers.foreign_networks import SPEC, Network, network, with_image, with_output
from helpers.matching_network import textured_scene


@pytest.fixture(autouse=True)
def _two_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the Motorcycle pair: two planes of 3 and 9 pixels, which block matching gets right."""
    scene = textured_scene(128, 280).astype(np.float32).transpose(2, 0, 1) / 255
    left = scene[..., 20:220]
    right = np.concatenate([scene[:, :64, 23:223], scene[:, 64:, 29:229]], axis=1)
    truth = np.repeat([[3.0], [9.0]], 64, axis=0) * np.ones((1, 200))
    valid = np.ones_like(truth, bool)
    valid[:, :16] = False
    pair = recognition._Sample(
        np.ascontiguousarray(left), np.ascontiguousarray(right), truth.astype(np.float32), valid
    )
    monkeypatch.setattr(recognition, "_sample", lambda: pair)


def runner(made: Network | onnx.ModelProto, folder: Path) -> Runner:
    model = made.model if isinstance(made, Network) else made
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return open_runner(read_network_file(path), None, Options())


def tried(made: Network, folder: Path, given: Table | None = None) -> Recognition:
    return recognize(runner(made, folder), given or {}, "net")


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        with_image(layout="NHWC", range=(0.0, 255.0)),
        with_image(color="gray", range=(-1.0, 1.0)),
        with_image(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        with_output(sign="negative"),
        replace(SPEC, inputs=(InputSpec("pair", "left+right"),)),
        replace(SPEC, inputs=(InputSpec("pair", "right+left"),)),
        replace(SPEC, inputs=(InputSpec("b", "left"), InputSpec("a", "right")), output=OutputSpec("y")),
        with_output(resolution=0.25),
        with_output(resolution=0.25, scale=4.0),
        replace(SPEC, size=SizeSpec(height=128, width=192)),
    ],
)
def test_a_network_that_is_right_under_one_reading_is_recognized(spec: ForeignSpec, tmp_path: Path) -> None:
    found = tried(network(spec), tmp_path)
    assert found.spec is not None, found.problem
    assert found.problem == ""
    assert found.tried[0].error < 1
    assert found.spec.inputs == spec.inputs
    assert found.spec.output == spec.output
    for key in ("layout", "range", "mean", "std"):
        assert getattr(found.spec.image, key) == getattr(spec.image, key)
    assert found.spec.size.fixed == spec.size.fixed
    assert found.bytes_per_pixel >= 500


def test_a_network_that_any_range_suits_is_ambiguous(tmp_path: Path) -> None:
    found = tried(network(strict=False), tmp_path)
    assert found.spec is None
    assert "almost equally right" in found.problem
    assert "give image.range" in found.problem
    known = tried(network(strict=False), tmp_path, {"image": {"range": [0.0, 1.0]}})
    assert known.spec is not None
    assert known.spec.image.range == (0.0, 1.0)


def test_a_network_that_is_wrong_under_all_readings_is_refused(tmp_path: Path) -> None:
    found = tried(network(with_output(scale=0.01)), tmp_path)
    assert found.spec is None
    assert "is not recognized: of" in found.problem
    assert "describe the network in a spec" in found.problem


def test_a_complete_spec_is_not_doubted(tmp_path: Path) -> None:
    wrong = replace(SPEC, output=OutputSpec("disparity", scale=3.0))
    found = tried(network(), tmp_path, wrong.to_table())
    assert found.spec == wrong
    assert len(found.tried) == 1
    assert found.tried[0].error > 3


def test_a_spec_that_names_what_the_network_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="no input 'x', which the spec names; it has left, right"):
        tried(network(), tmp_path, {"input": [{"name": "x", "content": "left"}]})
    with pytest.raises(UnsupportedError, match="no output 'y'"):
        tried(network(), tmp_path, {"output": {"name": "y"}})


def model(shapes: dict[str, list[int | str]], output: list[int | str]) -> onnx.ModelProto:
    """A network that adds up its inputs."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, output)
    node = helper.make_node("Sum", list(shapes), ["y"])
    graph = helper.make_graph([node], "g", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"a": [1, 3, "h", "w"]}, "has no channels for both images"),
        ({"a": [1, 10]}, "inputs that are not one or two images"),
        ({name: [1, 3, 64, 64] for name in "abc"}, "inputs that are not one or two images"),
        ({name: [1, 3, 64, 64] for name in "abcd"}, "their names do not tell"),
        ({"a": [1, 5, 64, 64], "b": [1, 5, 64, 64]}, "has no channels for an image"),
    ],
)
def test_networks_that_are_not_for_stereo_are_refused(
    shapes: dict[str, list[int | str]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        recognize(runner(model(shapes, next(iter(shapes.values()))), tmp_path), {}, "net")


def test_a_network_without_a_map_is_refused(tmp_path: Path) -> None:
    made = network()
    del made.model.graph.output[:]
    pooled = helper.make_node("GlobalAveragePool", ["disparity"], ["score"])
    made.model.graph.node.append(pooled)
    made.model.graph.output.append(helper.make_tensor_value_info("score", TensorProto.FLOAT, [1, 1, 1, 1]))
    assert "computes no disparity map" in tried(made, tmp_path).problem
