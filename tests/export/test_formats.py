"""What is written computes what PyTorch computes, and says what it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim

import aanet
from aanet.export.exporting import export_network
from aanet.export.onnx_export import _decomposed, _native
from aanet.export.parity import MAX_DIFFERENCE
from aanet.export.recording import deform_conv2d_node, quiet_exporters, simplify
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import NetworkSpec
from aanet.matcher import StereoMatcher
from aanet.models.layers import DeformConv2d
from aanet.ops.deform_conv import using_deform_conv
from helpers.exported_networks import Exported
from helpers.small_networks import build_small

pytestmark = pytest.mark.slow

PLAIN_OPERATORS = {
    *("Abs", "Add", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "Constant", "Conv"),
    *(
        "ConvTranspose",
        "Div",
        "Expand",
        "Gather",
        "GridSample",
        "LeakyRelu",
        "MatMul",
        "Max",
        "Min",
        "Mul",
        "Neg",
    ),
    *("Pad", "Range", "ReduceL1", "ReduceMax", "ReduceSum", "Relu", "Reshape", "Resize", "Shape", "Sigmoid"),
    *("Slice", "Softmax", "Split", "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where"),
}


def operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def noise(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize("deform", ["native", "decomposed"])
@pytest.mark.parametrize(
    ("name", "size"),
    [("aanet", (48, 72)), pytest.param("aanet_plus", (96, 96), marks=pytest.mark.extended)],
)
def test_adaptive_networks_agree_in_both_deform_modes(
    name: str, size: tuple[int, int], deform: str, tmp_path: Path
) -> None:
    network = build_small(name, randomize=True)
    report = export_network(network, tmp_path / "model.onnx", weights="random", deform=deform, size=size)
    assert report.parity.disparity.max_px <= MAX_DIFFERENCE
    found = operators(report.path)
    layers = sum(isinstance(module, DeformConv2d) for module in network.modules())
    assert found["DeformConv"] >= (layers if deform == "native" else 0)
    assert found["GridSample"] >= (layers if deform == "decomposed" else 0)
    assert found.keys() <= PLAIN_OPERATORS | ({"DeformConv"} if deform == "native" else set())
    (opset,) = onnx.load(report.path).opset_import
    assert opset.version == (19 if deform == "native" else 18)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("stereonet", (48, 64)),
        ("gcnet", (64, 64)),
        pytest.param("psmnet", (64, 64), marks=pytest.mark.extended),
        pytest.param("ganet", (48, 48), marks=pytest.mark.extended),
    ],
)
def test_3d_networks_agree_and_need_plain_operators_only(
    name: str, size: tuple[int, int], tmp_path: Path
) -> None:
    report = export_network(
        build_small(name, randomize=True), tmp_path / "model.onnx", weights="random", size=size
    )
    assert report.parity.disparity.max_px <= MAX_DIFFERENCE
    assert operators(report.path).keys() <= PLAIN_OPERATORS
    assert report.description.deformable_convolution == "none"


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [pytest.param(".onnx", marks=pytest.mark.extended), ".xml"])
def test_the_fast_network_takes_any_size_and_batch_in_every_format(suffix: str, tmp_path: Path) -> None:
    network = build_small("aanet_fast", randomize=True)
    path = tmp_path / f"fast{suffix}"
    report = export_network(network, path, weights="random")
    assert report.parity.disparity.max_px <= MAX_DIFFERENCE
    pairs = [(noise(64, 96, seed), noise(64, 96, seed + 1)) for seed in range(2)]
    pairs.append((noise(70, 130), noise(70, 130, 1)))
    theirs = StereoMatcher(network, engine="torch").batch(pairs)
    for ours, other in zip(StereoMatcher(path).batch(pairs), theirs, strict=True):
        np.testing.assert_allclose(ours.disparity, other.disparity, atol=MAX_DIFFERENCE)


def test_two_sizes_and_a_batch_through_one_file_equal_the_network(exported: Exported) -> None:
    network = StereoMatcher(exported.network, engine="torch")
    pairs = [(noise(33, 61, seed), noise(33, 61, seed + 1)) for seed in range(2)]
    pairs.append((noise(40, 90), noise(40, 90, 1)))
    for ours, theirs in zip(
        exported.matcher.batch(pairs, check=True), network.batch(pairs, check=True), strict=True
    ):
        np.testing.assert_allclose(ours.disparity, theirs.disparity, atol=MAX_DIFFERENCE)
        np.testing.assert_allclose(ours.confidence, theirs.confidence, atol=1e-3)
        assert ours.model == theirs.model == "stereonet_aa"


def test_a_file_says_what_it_is(exported: Exported) -> None:
    description = exported.report.description
    assert exported.matcher.spec == description.spec
    assert description.spec == NetworkSpec("stereonet_aa", 48, 500, True, 4, SizeRule(4, 8))
    properties = description.properties()
    assert properties["weights"] == "sha256:0123"
    assert properties["size"] == "dynamic"
    assert properties["aanet_version"] == aanet.__version__
    assert properties["license"] == "Apache-2.0"
    assert "0 … 1" in properties["normalization"]


def test_a_file_holds_no_path_of_the_machine_that_wrote_it(exported: Exported) -> None:
    assert str(Path(aanet.__file__).parent).encode() not in exported.path.read_bytes()


def test_axes_of_an_onnx_file_have_names(exported: Exported) -> None:
    if exported.path.suffix != ".onnx":
        pytest.skip("the other formats do not name axes")
    model = onnx.load(exported.path)
    shapes = {
        value.name: [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    assert shapes == {
        "left": ["batch", 3, "height", "width"],
        "right": ["batch", 3, "height", "width"],
        "disparity": ["batch", "height", "width"],
        "confidence": ["batch", "height", "width"],
    }
    assert {each.key: each.value for each in model.metadata_props} == exported.report.description.properties()


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_half_precision_halves_the_weights_and_loses_only_the_rounding(suffix: str, tmp_path: Path) -> None:
    network = build_small("stereonet_aa", randomize=True)
    report = export_network(network, tmp_path / f"model{suffix}", weights="random", size=(16, 24), half=True)
    assert report.parity.disparity.max_px <= MAX_DIFFERENCE
    assert report.parity.rounding is not None
    assert 1e-6 < report.parity.rounding.mean_px < 0.1
    assert report.description.storage == "float16"
    full = 4 * sum(parameter.numel() for parameter in network.parameters())
    assert report.path.with_suffix(".onnx" if suffix == ".onnx" else ".bin").stat().st_size < 0.65 * full


@pytest.mark.parametrize("translation", [_native, _decomposed])
@pytest.mark.parametrize("stride", [1, 2])
def test_one_deformable_convolution_for_every_size(translation: object, stride: int, tmp_path: Path) -> None:
    import onnxruntime

    torch.manual_seed(0)
    layer = DeformConv2d(4, 6, stride).eval().requires_grad_(False)
    nn.init.normal_(layer.offset_predictor.weight, std=0.5)
    free = {0: Dim("batch"), 2: 2 * Dim("height", min=2), 3: 2 * Dim("width", min=2)}
    with torch.no_grad(), using_deform_conv(deform_conv2d_node), quiet_exporters():
        program = torch.export.export(layer, (torch.rand(2, 4, 8, 12),), dynamic_shapes=(free,))
        torch.onnx.export(
            program,
            f=tmp_path / "layer.onnx",
            dynamo=True,
            verbose=False,
            opset_version=19,
            custom_translation_table={torch.ops.aanet.deform_conv2d.default: translation},
        )
    session = onnxruntime.InferenceSession(tmp_path / "layer.onnx")
    for shape in ((1, 4, 10, 6), (3, 4, 6, 14)):
        x = torch.randn(shape)
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), layer(x), rtol=1e-4, atol=1e-5)


def test_simplifying_changes_no_result_and_not_the_network() -> None:
    network = build_small("psmnet", randomize=True)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    left, right = torch.rand(2, 1, 3, 64, 64)
    with torch.no_grad():
        simple = simplify(network)
        torch.testing.assert_close(
            _disparity(simple, left, right), _disparity(network, left, right), rtol=0, atol=1e-3
        )
    assert not any(isinstance(module, nn.BatchNorm3d) for module in simple.modules())
    for key, value in network.state_dict().items():
        assert torch.equal(value, before[key])


def _disparity(network: nn.Module, left: Tensor, right: Tensor) -> Tensor:
    disparity: Tensor = network(left, right).disparity
    return disparity
