"""Block matching as ONNX networks in all the conventions of foreign networks, with its twin in NumPy.

Every network computes the same disparities if it is fed and read as its own spec says, and zeros if the
images are not in the range that it expects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from scipy.ndimage import uniform_filter

from aanet.engines.foreign.protobuf import bytes_field as _field
from aanet.engines.foreign.protobuf import number_field as _number
from aanet.engines.foreign.spec import ForeignSpec, ImageSpec, InputSpec, OutputSpec, SizeSpec

RANGE, WINDOW = 12, 7
GRAY = (0.299, 0.587, 0.114)
_FAR = 10.0  # the cost of what lies outside of the right image

SPEC = ForeignSpec(
    name="blocks",
    inputs=(InputSpec("left", "left"), InputSpec("right", "right")),
    image=ImageSpec("NCHW", "RGB"),
    size=SizeSpec(4, 8),
    output=OutputSpec("disparity"),
    max_disparity=RANGE,
)


def block_matching(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """The twin: the disparity [H, W] of RGB images [3, H, W] in 0 … 1."""
    grays = [np.tensordot(np.array(GRAY), each.astype(np.float64), 1) for each in (left, right)]
    costs = []
    for shift in range(RANGE):
        moved = np.full_like(grays[1], _FAR)
        moved[:, shift:] = grays[1][:, : grays[1].shape[1] - shift]
        costs.append(uniform_filter(np.abs(grays[0] - moved), WINDOW, mode="constant"))
    return np.argmin(costs, axis=0).astype(np.float32)


@dataclass(frozen=True)
class Network:
    """A network and its own spec."""

    model: onnx.ModelProto
    spec: ForeignSpec

    def save(self, path: Path) -> Path:
        """Write the ONNX file."""
        path.write_bytes(self.model.SerializeToString())
        return path


def network(
    spec: ForeignSpec = SPEC, *, channels: int = 1, output_layout: str = "NCHW", strict: bool = True
) -> Network:
    """Return block matching that is fed and read as the spec says.

    Args:
        spec: The conventions.
        channels: Channels of the output: the disparity, then zeros.
        output_layout: Layout of the output.
        strict: Whether images of another range than that of the spec give zeros.
    """
    builder = _Builder()
    views = builder.views(spec)
    disparity = builder.match(*views)
    if strict:
        disparity = builder.node("Mul", disparity, builder.in_range(views[0]))
    return Network(builder.finish(spec, disparity, channels, output_layout), spec)


class _Builder:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: object, kind: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def views(self, spec: ForeignSpec) -> list[str]:
        """The gray left and right image in 0 … 1, of the inputs at full scale."""
        found: dict[str, str] = {}
        count = 1 if spec.image.color == "gray" else 3
        for each in spec.inputs:
            tensor = each.name
            if spec.image.layout == "NHWC":
                tensor = self.node("Transpose", tensor, perm=[0, 3, 1, 2])
            if each.scale != 1:
                continue
            for number, side in enumerate(each.content.split("+")):
                part = self.node(
                    "Slice",
                    tensor,
                    self.constant([number * count], np.int64),
                    self.constant([(number + 1) * count], np.int64),
                    self.constant([1], np.int64),
                )
                found[side] = self.gray(part, spec.image)
        return [found["left"], found["right"]]

    def gray(self, tensor: str, image: ImageSpec) -> str:
        """Undo the normalization and the colors."""
        if image.std:
            tensor = self.node("Mul", tensor, self.constant(np.array(image.std)[:, None, None]))
        if image.mean:
            tensor = self.node("Add", tensor, self.constant(np.array(image.mean)[:, None, None]))
        low, high = image.range
        tensor = self.node("Sub", tensor, self.constant(low))
        tensor = self.node("Div", tensor, self.constant(high - low))
        if image.color == "gray":
            return tensor
        weights = np.array(GRAY if image.color == "RGB" else GRAY[::-1])[None, :, None, None]
        return self.node("Conv", tensor, self.constant(weights))

    def match(self, left: str, right: str) -> str:
        costs = []
        for shift in range(RANGE):
            pads = self.constant([0, 0, 0, shift, 0, 0, 0, -shift], np.int64)
            moved = self.node("Pad", right, pads, self.constant(_FAR))
            cost = self.node("Abs", self.node("Sub", left, moved))
            half = WINDOW // 2
            costs.append(
                self.node(
                    "AveragePool", cost, kernel_shape=[WINDOW] * 2, pads=[half] * 4, count_include_pad=1
                )
            )
        best = self.node("ArgMin", self.node("Concat", *costs, axis=1), axis=1, keepdims=1)
        return self.node("Cast", best, to=TensorProto.FLOAT)

    def in_range(self, gray: str) -> str:
        """1 if the image is in 0 … 1 and uses it, else 0."""
        low, high = (self.node(kind, gray, keepdims=1) for kind in ("ReduceMin", "ReduceMax"))
        checks = [
            self.node("Greater", low, self.constant(-0.01)),
            self.node("Less", low, self.constant(0.25)),
            self.node("Less", high, self.constant(1.01)),
            self.node("Greater", high, self.constant(0.75)),
        ]
        together = self.node("And", self.node("And", *checks[:2]), self.node("And", *checks[2:]))
        return self.node("Cast", together, to=TensorProto.FLOAT)

    def finish(self, spec: ForeignSpec, disparity: str, channels: int, output_layout: str) -> onnx.ModelProto:
        output = spec.output
        if output.resolution != 1:
            step = round(1 / output.resolution)
            disparity = self.node("AveragePool", disparity, kernel_shape=[step] * 2, strides=[step] * 2)
        factor = (-1 if output.sign == "negative" else 1) / output.scale
        disparity = self.node("Mul", disparity, self.constant(factor))
        zeros = self.node("Mul", disparity, self.constant(0.0))
        planes = [zeros] * channels
        planes[output.channel] = disparity
        joined = self.node("Concat", *planes, axis=1)
        perm = [0, 2, 3, 1] if output_layout == "NHWC" else [0, 1, 2, 3]
        self.nodes.append(helper.make_node("Transpose", [joined], [output.name], perm=perm))
        inputs = [
            helper.make_tensor_value_info(each.name, TensorProto.FLOAT, _shape(each, spec))
            for each in spec.inputs
        ]
        outputs = [helper.make_tensor_value_info(output.name, TensorProto.FLOAT, [None] * 4)]
        graph = helper.make_graph(self.nodes, "blocks", inputs, outputs, initializer=self.constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="tests"
        )
        onnx.checker.check_model(model)
        return model


def _shape(each: InputSpec, spec: ForeignSpec) -> list[int | str]:
    channels = (1 if spec.image.color == "gray" else 3) * (each.content.count("+") + 1)
    sides: list[int | str] = ["h" + each.name, "w" + each.name]
    if spec.size.fixed is not None:
        sides = [round(side * each.scale) for side in spec.size.fixed]
    return [1, channels, *sides] if spec.image.layout == "NCHW" else [1, *sides, channels]


def with_image(**changes: object) -> ForeignSpec:
    """The common spec with other images."""
    return replace(SPEC, image=replace(SPEC.image, **changes))


def with_output(**changes: object) -> ForeignSpec:
    """The common spec with another output."""
    return replace(SPEC, output=replace(SPEC.output, **changes))


def frozen_graph(
    factor: float = 1.0, operation: str = "Mul", channels: int = 2, multiples: tuple[int, ...] = ()
) -> bytes:
    """A frozen TensorFlow graph: output [1, H, W, C] = input × factor, then repeated along the axes."""
    shape = b"".join(_field(2, _number(1, side & (2**64 - 1))) for side in (1, -1, -1, channels))
    value = np.float32(factor).tobytes()
    kind = _entry("dtype", _number(6, 1))
    tensor = _number(1, 1) + _field(2, b"") + _field(4, value)
    nodes = [
        _text(1, "images") + _text(2, "Placeholder") + kind + _entry("shape", _field(7, shape)),
        _text(1, "factor") + _text(2, "Const") + kind + _entry("value", _field(8, tensor)),
        _text(1, "disparity")
        + _text(2, operation)
        + _text(3, "images")
        + _text(3, "factor")
        + _entry("T", _number(6, 1)),
    ]
    if multiples:
        kind = _entry("dtype", _number(6, 3))
        shape = _field(2, _field(2, _number(1, len(multiples))))
        tensor = _number(1, 3) + shape + _field(4, np.array(multiples, "<i4").tobytes())
        nodes.append(_text(1, "multiples") + _text(2, "Const") + kind + _entry("value", _field(8, tensor)))
        nodes.append(
            _text(1, "tiled")
            + _text(2, "Tile")
            + _text(3, "disparity")
            + _text(3, "multiples")
            + _entry("T", _number(6, 1))
            + _entry("Tmultiples", _number(6, 3))
        )
    return b"".join(_field(1, node) for node in nodes)


def _entry(key: str, value: bytes) -> bytes:
    return _field(5, _text(1, key) + _field(2, value))


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())
