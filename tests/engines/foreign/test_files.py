"""Files of strangers: refused before any runtime sees them, in one sentence."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from aanet.engines.foreign.files import is_foreign, read_network_file
from aanet.errors import AanetError, UnsupportedError
from fuzz.valid_networks import onnx_files
from helpers.foreign_networks import frozen_graph, network


def refused(path: Path, message: str) -> None:
    with pytest.raises(AanetError, match=message) as caught:
        read_network_file(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def changed() -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(network().model)
    return model


def save(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "a.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_own_exports_are_told_from_foreign_networks(tmp_path: Path) -> None:
    own, foreign = tmp_path / "own.onnx", network().save(tmp_path / "foreign.onnx")
    own.write_bytes(onnx_files()[0])
    assert not is_foreign(own)
    assert is_foreign(foreign)
    assert not is_foreign(tmp_path / "absent.onnx")
    assert not is_foreign(Path("aanet"))


def test_weights_in_another_file_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(100))
    model = changed()
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=str(secret))
    refused(save(model, tmp_path), "keeps weights in another file, which is not read")


def test_weights_in_another_file_are_found_inside_attributes(tmp_path: Path) -> None:
    model = changed()
    tensor = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../etc/passwd")
    inner = helper.make_graph([helper.make_node("Constant", [], ["c"], value=tensor)], "inner", [], [])
    model.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner))
    refused(save(model, tmp_path), "keeps weights in another file")


def test_operations_that_need_code_are_refused(tmp_path: Path) -> None:
    model = changed()
    model.graph.node.append(helper.make_node("Evil", ["left"], ["z"], domain="my.company"))
    refused(save(model, tmp_path), "operations of 'my.company', which need code from elsewhere")


def test_graphs_inside_graphs_are_bounded(tmp_path: Path) -> None:
    inner = helper.make_graph([], "g", [], [])
    for _ in range(20):
        node = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
        inner = helper.make_graph([node], "g", [], [])
        inner.node[0].attribute.pop()  # one branch, or the file would double each time
    model = changed()
    model.graph.node.extend(inner.node)
    refused(save(model, tmp_path), "graphs inside graphs, more than 8 deep")


@pytest.mark.parametrize(
    "operation", ["ReadFile", "WriteFile", "PyFunc", "RestoreV2", "TextLineDataset", "SaveV2"]
)
def test_graphs_that_touch_files_or_code_are_refused(operation: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(frozen_graph(operation=operation))
    refused(path, f"contains the operation {operation}, which may touch files, state or code")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.onnx", b"", "is empty"),
        ("a.onnx", b"not a network", "is not an ONNX"),
        ("a.onnx", b"\x08\x07", "contains no graph"),
        ("a.onnx", b"\x3a\xff\xff\xff\xff\x0f", "longer than the message"),
        ("a.onnx", b"\xff" * 30, "is not an ONNX"),
        ("a.pb", b"\x08\x01\x12\x00", "is a TensorFlow SavedModel"),
        ("a.pb", b"\xff\xff", "is not a frozen TensorFlow graph"),
        ("a.xml", b"<html></html>", "contains no network"),
        ("a.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><net version="11"></net>', "declares XML entities"),
        ("a.xml", b'<net version="11"><layer type="Const"/></net>', "a.bin is absent"),
    ],
)
def test_damaged_files_are_one_sentence(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    refused(path, message)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_weights_that_are_no_file_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b'<net version="11"></net>')
    os.mkfifo(tmp_path / "a.bin")
    refused(tmp_path / "a.xml", "is not a regular file")


def test_torchscript_and_other_formats_are_refused_with_the_reason(tmp_path: Path) -> None:
    script = tmp_path / "a.pt"
    with zipfile.ZipFile(script, "w") as archive:
        archive.writestr("net/code/__torch__.py", "def forward(self): pass")
    with pytest.raises(UnsupportedError, match="is TorchScript, a program that loading would execute"):
        is_foreign(script)
    lite = tmp_path / "a.tflite"
    lite.write_bytes(b"TFL3")
    with pytest.raises(
        UnsupportedError, match="is TensorFlow Lite, which cannot be read; convert it to ONNX"
    ):
        is_foreign(lite)
    weights = tmp_path / "b.pt"
    with zipfile.ZipFile(weights, "w") as archive:
        archive.writestr("archive/data.pkl", "")
    assert not is_foreign(weights)
