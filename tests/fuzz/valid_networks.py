"""Small valid files of weights, of exported networks and of checkpoints of a training run."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import openvino
import safetensors.torch
import torch
from onnx import TensorProto, helper
from openvino import opset13

from aanet.inference.description import SECTION, WEIGHTS_DIGEST, Description
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import NetworkSpec
from aanet.models.network import Architecture
from aanet.models.weights.checkpoint import FORMAT, NORMALIZATION
from aanet.training.checkpoint import TrainingState, save_checkpoint
from helpers.foreign_networks import frozen_graph, network

DESCRIPTION = Description(NetworkSpec("aanet", 48, 800, True, 3, SizeRule(12, 24)), "random", None, "native")
# Far too few weights for any network: its check is the last one, after everything that parses.
WEIGHTS = {"aggregation.final_conv.0.weight": torch.ones(64, 1), "norm.count": torch.tensor(3)}


def weights() -> list[bytes]:
    """A safetensors file of this package, and one without its metadata."""
    metadata = {
        "format": FORMAT,
        "architecture": json.dumps(vars(Architecture("stereonet", 48, False))),
        "normalization": json.dumps(NORMALIZATION),
        "hints": json.dumps({"upscale_to": 900, "sharpen_edges": True, "fill_border": True}),
        "facts": json.dumps({"scores": {"stereonet": {"motorcycle": {"epe": 1.5}}}, "steps": 100}),
    }
    return [safetensors.torch.save(WEIGHTS, metadata), safetensors.torch.save(WEIGHTS)]


def pickles() -> list[bytes]:
    """PyTorch checkpoints, in the formats of today and of before 2020."""
    found = []
    for new in (True, False):
        file = io.BytesIO()
        torch.save({"state_dict": WEIGHTS, "epoch": 3}, file, _use_new_zipfile_serialization=new)
        found.append(file.getvalue())
    return found


def frozen_graphs() -> list[bytes]:
    """Frozen TensorFlow graphs, with and without a `Tile`."""
    return [frozen_graph(), frozen_graph(multiples=(1, 1, 1, 3))]


def foreign_files() -> list[bytes]:
    """A network that another program wrote."""
    return [network().model.SerializeToString()]


def onnx_files() -> list[bytes]:
    """The disparity is the mean of the left image, the confidence that of the right one."""
    sides = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", 3, "h", "w"])
        for name in ("left", "right")
    ]
    maps = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", "h", "w"])
        for name in ("disparity", "confidence")
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    nodes = [
        helper.make_node("ReduceMean", [side.name, "axes"], [out.name], keepdims=0)
        for side, out in zip(sides, maps, strict=True)
    ]
    graph = helper.make_graph(nodes, "g", sides, maps, initializer=[axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    helper.set_model_props(model, DESCRIPTION.properties())
    onnx.checker.check_model(model)
    return [model.SerializeToString()]


def openvino_files() -> tuple[bytes, bytes]:
    """The `.xml` and the `.bin` file of the same network."""
    sides = [opset13.parameter([-1, 3, -1, -1], np.float32, name) for name in ("left", "right")]
    axes = opset13.constant(np.array([1], np.int64))
    model = openvino.Model([opset13.reduce_mean(side, axes) for side in sides], sides, "small")
    for key, value in DESCRIPTION.properties().items():
        model.set_rt_info(value, [SECTION, key])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        openvino.save_model(model, path)
        content = path.with_suffix(".bin").read_bytes()
        model.set_rt_info(hashlib.sha256(content).hexdigest(), [SECTION, WEIGHTS_DIGEST])
        openvino.save_model(model, path)
        return path.read_bytes(), content


def checkpoint_files() -> dict[str, bytes]:
    """The files of a checkpoint of a training run."""
    # The same in every process: a child adds the other files to the one that is mutated.
    state = {"stage": 1, "moments": [torch.arange(4)], "random": (3, tuple(range(9)), None), "minutes": 2.5}
    checkpoint = TrainingState("aanet", 7, 1.25, WEIGHTS, {"conv.weight": torch.zeros(2)}, state)
    with tempfile.TemporaryDirectory() as folder:
        path = save_checkpoint(Path(folder), checkpoint)
        return {file.name: file.read_bytes() for file in sorted(path.iterdir())}
