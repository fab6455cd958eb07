"""Export to ONNX, with deformable convolutions as DeformConv (opset 19) or decomposed (opset 18)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx_ir
import torch
from onnx import numpy_helper
from onnx_ir.passes.common import CommonSubexpressionEliminationPass
from onnxscript import opset18, opset19
from onnxscript.optimizer import fold_constants, remove_unused_nodes

from aanet.export.half import as_half
from aanet.export.recording import deform_conv2d_node, quiet_exporters, record
from aanet.inference.description import Description
from aanet.models.network import StereoNetwork

_AXES = ("batch", "height", "width")
# Typed as Any, because onnxscript annotates operators for tensors, not for the graph values used here.
op: Any = opset18
op19: Any = opset19
_OPSETS = {"native": 19, "decomposed": 18}


def write_onnx(network: StereoNetwork, description: Description, path: Path) -> None:
    """Write a network, prepared by `simplify`, with its description as metadata."""
    native = description.deformable_convolution == "native"
    program = record(network, description.size, deform_conv2d_node)
    with quiet_exporters():
        exported = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            optimize=False,  # pattern matching takes minutes on GA-Net's unrolled scans
            opset_version=_OPSETS["native" if native else "decomposed"],
            input_names=["left", "right"],
            output_names=["disparity", "confidence"],
            custom_translation_table={
                torch.ops.aanet.deform_conv2d.default: _native if native else _decomposed
            },
        )
    assert exported is not None
    _optimize(exported.model)
    model = exported.model_proto
    if description.size is None:
        _name_axes(model)
    if description.storage == "float16":
        _store_as_half(model)
    model.producer_name, model.producer_version = "aanet", description.properties()["aanet_version"]
    onnx.helper.set_model_props(model, description.properties())
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _optimize(model: onnx_ir.Model) -> None:
    """Merge common subexpressions, fold constants and remove unused nodes, including sequences of tensors."""
    merge = CommonSubexpressionEliminationPass()
    merge(model)
    fold_constants(model)
    merge(model)
    remove_unused_nodes(model)
    for node in model.graph:
        node.metadata_props.clear()  # debugging notes of torch's exporter, larger than the graph itself


# torch's exporter calls the two translations below with graph values, whose shapes are known where they are
# static, and the operator's integer arguments. They build the nodes of one deformable convolution.


def _native(x: Any, offset: Any, mask: Any, weight: Any, stride: int, padding: int, dilation: int) -> Any:
    """Translate to DeformConv, whose offsets have the same order: group, kernel position, (y, x)."""
    kernel = list(weight.shape[2:])
    return op19.DeformConv(
        x,
        weight,
        offset,
        None,
        mask,
        kernel_shape=kernel,
        strides=[stride] * 2,
        pads=[padding] * 4,
        dilations=[dilation] * 2,
        offset_group=mask.shape[1] // (kernel[0] * kernel[1]),
    )


def _decomposed(x: Any, offset: Any, mask: Any, weight: Any, stride: int, padding: int, dilation: int) -> Any:
    """Translate like `deform_conv2d_grid`: GridSample at all K points of a group, then a 1×1 convolution."""
    outputs, channels, kernel_height, kernel_width = weight.shape
    points = kernel_height * kernel_width
    groups = mask.shape[1] // points  # deformable groups G
    inside, outside = op.Shape(x, start=2), op.Shape(mask, start=2)  # [H, W] and [Ho, Wo]

    def split(values: Any, *leading: int) -> Any:
        return op.Reshape(values, op.Concat(op.Constant(value_ints=leading), outside, axis=0))

    kernel_rows = [row * dilation - padding for row in range(kernel_height) for _ in range(kernel_width)]
    kernel_columns = [column * dilation - padding for column in range(kernel_width)] * kernel_height
    moved_rows, moved_columns = op.Split(split(offset, -1, points, 2), axis=2, num_outputs=2)
    rows = _coordinates(moved_rows, kernel_rows, stride, inside, outside, axis=0)
    columns = _coordinates(moved_columns, kernel_columns, stride, inside, outside, axis=1)
    grid = op.Transpose(op.Concat(columns, rows, axis=2), perm=[0, 1, 3, 4, 2])  # [B·G, K, Ho, Wo, 2]
    tall = op.Concat(
        op.Constant(value_ints=[0, -1]), op.Shape(mask, start=3), op.Constant(value_ints=[2]), axis=0
    )
    grouped = op.Reshape(x, op.Concat(op.Constant(value_ints=[-1, channels // groups]), inside, axis=0))
    samples = op.GridSample(
        grouped, op.Reshape(grid, tall), mode="bilinear", padding_mode="zeros", align_corners=0
    )  # [B·G, C/G, K·Ho, Wo]
    weighted = op.Mul(split(samples, -1, channels // groups, points), split(mask, -1, 1, points))
    kernel = op.Reshape(weight, op.Constant(value_ints=[outputs, channels * points, 1, 1]))
    return op.Conv(split(weighted, -1, channels * points), kernel, kernel_shape=[1, 1])


def _coordinates(moved: Any, kernel: list[int], stride: int, inside: Any, outside: Any, axis: int) -> Any:
    """Return the sampling coordinates along an axis, [B·G, K, 1, Ho, Wo], normalized to -1 … 1."""
    count = op.Squeeze(op.Cast(op.Slice(outside, [axis], [axis + 1]), to=onnx.TensorProto.FLOAT))
    length = op.Cast(op.Slice(inside, [axis], [axis + 1]), to=onnx.TensorProto.FLOAT)
    line = op.Mul(op.Range(0.0, count, 1.0), float(stride))
    line = op.Reshape(line, op.Constant(value_ints=[-1, 1] if axis == 0 else [1, -1]))
    steps = op.Reshape(op.Constant(value_floats=kernel), op.Constant(value_ints=[-1, 1, 1, 1]))
    position = op.Add(moved, op.Add(line, steps))
    return op.Sub(op.Div(op.Add(op.Mul(position, 2.0), 1.0), length), 1.0)


def _name_axes(model: onnx.ModelProto) -> None:
    """Name the dynamic axes batch, height and width; inner shapes are removed, as runtimes infer them."""
    del model.graph.value_info[:]
    for value in (*model.graph.input, *model.graph.output):
        dynamic = [size for size in value.type.tensor_type.shape.dim if size.dim_param]
        for size, name in zip(dynamic, _AXES, strict=True):
            size.dim_param = name


def _store_as_half(model: onnx.ModelProto) -> None:
    """Store rounded kernels as float16 and cast them to float32 at the start of the graph."""
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        half = as_half(numpy_helper.to_array(tensor))
        if half is None:
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(half, f"{name}_float16"))
        cast = onnx.helper.make_node("Cast", [tensor.name], [name], to=onnx.TensorProto.FLOAT)
        model.graph.node.insert(0, cast)
