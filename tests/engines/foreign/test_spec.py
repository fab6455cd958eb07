"""Network specs as TOML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aanet.engines.foreign import ready_made
from aanet.engines.foreign.graph import Graph, Port
from aanet.engines.foreign.opening import find_spec, with_range
from aanet.engines.foreign.spec import ForeignSpec, InputSpec, SizeSpec, check_table, read_table
from aanet.errors import AanetError, InputError, UnsupportedError
from aanet.io.toml import loads
from helpers.foreign_networks import SPEC, with_image


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        replace(SPEC, inputs=(InputSpec("a", "left+right", 0.5),), title='A "network" \\ ü', note="short"),
        with_image(color="gray", mean=(0.5,), std=(0.25,), range=(-1.0, 1.0)),
        replace(SPEC, size=SizeSpec(height=480, width=640), max_disparity=None, license="MIT", source="here"),
    ],
)
def test_a_spec_survives_toml(spec: ForeignSpec) -> None:
    assert ForeignSpec.from_table(loads(spec.to_toml()), "it") == spec
    assert ForeignSpec.from_table(spec.to_table(), "it") == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not valid TOML"),
        ("colour = 'RGB'", "unknown key 'colour'"),
        ("[image]\ncolour = 'RGB'", r"unknown key 'image.colour' \(did you mean 'color'\?\)"),
        ("[image]\ncolor = 'rgb'", "image.color must be RGB or BGR or gray; it is 'rgb'"),
        ("[image]\nlayout = 3", "image.layout must be NCHW or NHWC"),
        ("[image]\nrange = [0, 0]", "image.range must be two different numbers"),
        ("[image]\nrange = [0, inf]", "image.range must be two different numbers"),
        ("[image]\nstd = [0.0]", "image.std must be a list of positive numbers"),
        ("[image]\nmean = [1, 2]", "one number, or one per color"),
        ("[size]\nmultiple = 0", "size.multiple must be a whole number from 1 to 1024"),
        ("[size]\nheight = 480", "needs both size.height and size.width"),
        ("[output]\nsign = 'minus'", "output.sign must be positive or negative"),
        ("[output]\nchannel = true", "output.channel must be a whole number"),
        ("[output]\nscale = -1", "output.scale must be a number from"),
        ("max_disparity = 100000", "max_disparity must be a whole number from 1 to 4096"),
        ("input = []", r"\[\[input\]\] must stand 1 to 8 times"),
        ("[[input]]\nname = 'a'\ncontent = 'both'", "input.content must be left or right or"),
        ("image = 3", "image must be a table"),
        ("note = 'a\tb'", "note must be a short text in one line"),
        ("name = ''", "name must be a short text"),
    ],
)
def test_a_wrong_file_is_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(AanetError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_an_incomplete_table_is_no_spec() -> None:
    with pytest.raises(AanetError, match="not a complete network spec: 'input' is missing"):
        ForeignSpec.from_table({"name": "a"}, "It")


def test_the_spec_beside_the_network_is_found(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    assert find_spec(path, None) == (None, "")
    (tmp_path / "net.toml").write_text(SPEC.to_toml())
    assert find_spec(path, None) == (SPEC.to_table(), str(tmp_path / "net.toml"))
    assert find_spec(path, SPEC)[0] == SPEC.to_table()
    assert find_spec(path, "hitnet_eth3d")[0]["image"]["color"] == "gray"
    with pytest.raises(
        InputError, match=r"no ready-made spec 'hitnet_eth' \(did you mean 'hitnet_eth3d'\?\)"
    ):
        find_spec(path, "hitnet_eth")
    with pytest.raises(AanetError, match="does not exist"):
        find_spec(path, "other.toml")


def test_a_search_range_fills_a_gap_and_contradicts_nothing(tmp_path: Path) -> None:
    unknown = replace(SPEC, max_disparity=None)
    assert with_range(unknown, 300, tmp_path).max_disparity == 300
    assert with_range(SPEC, None, tmp_path) == SPEC
    with pytest.raises(UnsupportedError, match="maximum disparity of 12, not 300"):
        with_range(SPEC, 300, tmp_path)


@pytest.mark.parametrize("name", ready_made.names())
def test_ready_made_specs_are_valid_and_say_where_they_come_from(name: str) -> None:
    table = ready_made.table(name)
    check_table(table, name)
    assert table["name"] == name
    assert table["source"].startswith("https://")
    assert table.get("license") or "license" in table["note"]
    assert name == "hitnet_eth3d" or not table.get("verified")


def graph(inputs: dict[str, tuple[int | None, ...]], *outputs: str) -> Graph:
    ports = tuple(Port(name, (name,), shape, "float32") for name, shape in inputs.items())
    found = tuple(Port(name, (name,), None, "float32") for name in outputs)
    return Graph("ONNX", "", "", ports, found, None, "openvino", "")


def test_networks_are_recognized_by_their_inputs_and_outputs() -> None:
    hitnet = graph({"input:0": (None, None, None, 2)}, "reference_output_disparity:0")
    found = ready_made.fitting(hitnet)
    assert found is not None
    assert found[1] == "hitnet_eth3d"
    color = graph({"input": (1, 6, 480, 640)}, "reference_output_disparity")
    found = ready_made.fitting(color)
    assert found is not None
    assert found[1] == "hitnet_flyingthings and hitnet_middlebury"
    assert "max_disparity" not in found[0]
    assert found[0]["image"]["color"] == "RGB"
    two = {"left": (1, 3, 480, 640), "right": (1, 3, 480, 640)}
    names = {"disp": "foundation_stereo", "disparity": "lite_any_stereo", "output": "crestereo_init"}
    for output, name in names.items():
        found = ready_made.fitting(graph(dict(two), output))
        assert found is not None
        assert found[1] == name
    assert ready_made.fitting(graph(dict(two), "flow")) is None
    assert ready_made.fitting(graph({**two, "flow_init": (1, 2, 240, 320)}, "output")) is None
    assert ready_made.fitting(graph({"left": (1, 1, 480, 640), "right": (1, 1, 480, 640)}, "disp")) is None
