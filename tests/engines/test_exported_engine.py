"""Opening exported files: damaged, foreign, too new for the runtime, of one size only."""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
import torch
from onnx import TensorProto, helper
from openvino import opset13

from aanet.engines.exported import FixedSizeEngine, open_exported
from aanet.engines.factory import open_engine
from aanet.errors import AanetError, ReadError, UnsupportedError
from aanet.export.recording import quiet_exporters
from aanet.inference.description import SECTION, WEIGHTS_DIGEST, Description
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import Maps, NetworkSpec

DESCRIPTION = Description(NetworkSpec("aanet", 48, 800, True, 3, SizeRule(12, 24)), "random", None, "native")


def small_onnx(path: Path, described: bool = True, opset: int = 19) -> Path:
    """A file with one DeformConv."""
    shapes = {"x": [1, 1, 3, 3], "w": [1, 1, 1, 1], "offset": [1, 2, 3, 3], "y": [1, 1, 3, 3]}
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()
    }
    node = helper.make_node("DeformConv", ["x", "w", "offset"], ["y"])
    graph = helper.make_graph([node], "g", [values["x"], values["w"], values["offset"]], [values["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    if described:
        helper.set_model_props(model, DESCRIPTION.properties())
    onnx.save(model, path)
    return path


def small_openvino(path: Path, described: bool = True) -> Path:
    images = opset13.parameter([1, 3], np.float32)
    shifted = opset13.add(images, opset13.constant(np.arange(3, dtype=np.float32)))
    model = openvino.Model([opset13.relu(shifted)], [images], "small")
    for key, value in DESCRIPTION.properties().items() if described else ():
        model.set_rt_info(value, [SECTION, key])
    openvino.save_model(model, path)
    digest = hashlib.sha256(path.with_suffix(".bin").read_bytes()).hexdigest()
    model.set_rt_info(digest, [SECTION, WEIGHTS_DIGEST])
    openvino.save_model(model, path)
    return path


def test_a_runtime_without_deform_conv_names_the_other_mode(tmp_path: Path) -> None:
    # Before opset 19 there was no DeformConv: the refusal of a runtime that knows nothing newer.
    path = small_onnx(tmp_path / "model.onnx", opset=18)
    with pytest.raises(
        UnsupportedError, match=r"too old for .*DeformConv.*--deform decomposed, or install a newer"
    ):
        open_engine(path)


def test_a_runtime_that_does_not_know_the_opset_names_the_other_mode(tmp_path: Path) -> None:
    path = small_onnx(tmp_path / "model.onnx", opset=99)
    with pytest.raises(AanetError, match="--deform decomposed"):
        open_engine(path)


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_a_damaged_file_is_a_sentence(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    whole = small_openvino(path) if suffix == ".xml" else small_onnx(tmp_path / "whole.onnx")
    path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(ReadError, match=f"model{suffix}") as caught:
        open_engine(path)
    assert "\n" not in str(caught.value)


def test_a_file_of_something_else_is_a_sentence(tmp_path: Path) -> None:
    small_onnx(tmp_path / "model.onnx", described=False)
    small_openvino(tmp_path / "model.xml", described=False)
    for suffix in (".onnx", ".xml"):
        with pytest.raises(AanetError, match="does not describe its network"):
            open_exported(tmp_path / f"model{suffix}")
        with pytest.raises(UnsupportedError, match=r"\[\[input\]\]|no channels"):  # as a foreign network
            open_engine(tmp_path / f"model{suffix}")


class _Creates:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["model.pt2", "MODEL.PT2", "model.pth"])
def test_no_code_in_a_program_runs(name: str, tmp_path: Path) -> None:
    program = torch.export.export(torch.nn.Identity(), (torch.ones(2),))
    with quiet_exporters():
        torch.export.save(program, tmp_path / "whole.pt2")
    inputs = io.BytesIO()
    torch.save((_Creates(tmp_path / "created"),), inputs)
    path = tmp_path / name
    with zipfile.ZipFile(tmp_path / "whole.pt2") as whole, zipfile.ZipFile(path, "w") as crafted:
        for member in whole.namelist():
            hostile = "sample_inputs" in member
            crafted.writestr(member, inputs.getvalue() if hostile else whole.read(member))
    with contextlib.suppress(Exception), quiet_exporters():
        torch.export.load(path)
    assert (tmp_path / "created").exists()  # the file is a working attack on torch itself
    (tmp_path / "created").unlink()
    for options in ({"model": path}, {"weights": path}):
        with pytest.raises(AanetError, match=name):
            open_engine(**options)
    assert not (tmp_path / "created").exists()


def test_openvino_misses_its_weights(tmp_path: Path) -> None:
    path = small_openvino(tmp_path / "model.xml")
    path.with_suffix(".bin").unlink()
    with pytest.raises(ReadError, match=r"model\.bin does not exist"):
        open_engine(path)


def test_openvino_gets_the_weights_of_another_export(tmp_path: Path) -> None:
    path = small_openvino(tmp_path / "model.xml")
    assert open_exported(path).spec == DESCRIPTION.spec
    path.with_suffix(".bin").write_bytes(b"\x01" + path.with_suffix(".bin").read_bytes()[1:])
    with pytest.raises(ReadError, match=r"model\.bin is damaged"):
        open_engine(path)


def test_an_exported_file_leaves_nothing_to_choose(tmp_path: Path) -> None:
    path = small_onnx(tmp_path / "model.onnx")
    for options in ({"weights": "random"}, {"engine": "openvino"}, {"device": "cuda"}):
        with pytest.raises(UnsupportedError, match="contains its weights and runs on onnxruntime"):
            open_engine(path, **options)
    with pytest.raises(UnsupportedError, match="maximum disparity of 48, not 96"):
        open_engine(path, max_disparity=96)
    with pytest.raises(UnsupportedError, match="only runs in float32"):
        open_engine(path, precision="bf16")
    with pytest.raises(ReadError, match="There is no file"):
        open_engine(tmp_path / "absent.onnx")
    with pytest.raises(UnsupportedError, match=r"onnxruntime only runs \.onnx files"):
        open_engine("aanet", engine="onnxruntime")
    assert open_exported(path).spec == DESCRIPTION.spec


class _Echo:
    """An engine for one size that returns the red channel, and the green one as confidence."""

    name, description, spec = "echo", "echo", DESCRIPTION.spec

    def __call__(self, left: np.ndarray, right: np.ndarray) -> Maps:
        assert left.shape == right.shape == (1, 3, 6, 8)
        return left[:, 0], right[:, 1]

    def available_memory(self) -> int:
        return 1


def test_one_size_takes_smaller_images_and_batches() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.random((2, 3, 3, 5, 6), np.float32)
    disparity, confidence = FixedSizeEngine(_Echo(), (6, 8))(left, right)
    np.testing.assert_array_equal(disparity, left[:, 0])
    np.testing.assert_array_equal(confidence, right[:, 1])


def test_one_size_refuses_larger_images() -> None:
    images = np.zeros((1, 3, 6, 9), np.float32)
    with pytest.raises(UnsupportedError, match=r"exported for images of 6×8.*got 6×9; match at a smaller"):
        FixedSizeEngine(_Echo(), (6, 8))(images, images)
