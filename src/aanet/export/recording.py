"""Recording a network as a graph with `torch.export`, optionally with single-node deformable convolutions."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from aanet.engines.folding import fold_batch_norms
from aanet.engines.graph import InferenceGraph
from aanet.export.half import round_kernels
from aanet.inference.size_rule import SizeRule
from aanet.models.network import StereoNetwork
from aanet.ops.deform_conv import DeformConv, DeformConvArguments, deform_conv2d_bags, using_deform_conv


def record(
    network: StereoNetwork, size: tuple[int, int] | None, deform_conv: DeformConv = deform_conv2d_bags
) -> ExportedProgram:
    """Return the network's `InferenceGraph` as a program with the inputs left and right.

    Args:
        network: A network prepared by `simplify`.
        size: Fixed height and width, for single images; None for a dynamic batch and dynamic sizes within
            `dynamic_sizes`.
        deform_conv: The implementation of deformable convolutions.
    """
    sizes = dynamic_sizes(network)
    multiple, least = sizes.multiple, sizes.minimum
    shapes = None
    if size is None:
        batch = Dim("batch", min=1)
        height, width = (Dim(name, min=least // multiple) for name in ("height", "width"))
        sides = {0: batch, 2: multiple * height, 3: multiple * width}
        shapes = (sides, sides)
    # Dynamic dimensions must differ from each other and from 1, or the exporter would equate them.
    example = torch.rand(1, 3, *size) if size else torch.rand(2, 3, least + multiple, least + 2 * multiple)
    with torch.no_grad(), using_deform_conv(deform_conv), quiet_exporters():
        program = torch.export.export(
            InferenceGraph(network), (example, example.clone()), dynamic_shapes=shapes
        )
    _remove_stack_traces(program)
    return program


def _remove_stack_traces(program: ExportedProgram) -> None:
    """Remove stack traces, which expose local paths and are half of the file size."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)


def dynamic_sizes(network: StereoNetwork) -> SizeRule:
    """Return the sizes that a graph with dynamic sizes supports; maps of width 1 would need another graph."""
    return replace(network.sizes, minimum=network.sizes.round_up(2 * network.sizes.multiple))


def simplify(network: StereoNetwork, half: bool = False) -> StereoNetwork:
    """Return a copy with folded batch norms and without in-place operators.

    Folding halves the number of operators, and exporters spend most of their time on in-place operators.

    Args:
        network: The network, which is not changed.
        half: Round kernels to float16 precision.
    """
    network = fold_batch_norms(network).requires_grad_(False)
    for module in network.modules():
        if isinstance(module, nn.ReLU | nn.LeakyReLU):
            module.inplace = False
        if isinstance(module, nn.Conv3d) and module.bias is None:
            # Without a bias, onnxscript 0.7 writes one of the wrong shape.
            module.bias = nn.Parameter(torch.zeros(module.out_channels), requires_grad=False)
    if half:
        round_kernels(network)
    return network


def deform_conv2d_node(given: DeformConvArguments) -> Tensor:
    """Compute a deformable convolution as a single operator of the program, `aanet::deform_conv2d`."""
    assert given.bias is None, "the networks' deformable convolutions have no bias"
    output: Tensor = torch.ops.aanet.deform_conv2d(
        given.x, given.offset, given.mask, given.weight, given.stride, given.padding, given.dilation
    )
    return output


@torch.library.custom_op("aanet::deform_conv2d", mutates_args=())
def _deform_conv2d(
    x: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, stride: int, padding: int, dilation: int
) -> Tensor:
    return deform_conv2d_bags(DeformConvArguments(x, offset, mask, weight, None, stride, padding, dilation))


@_deform_conv2d.register_fake
def _deform_conv2d_shape(
    x: Tensor, _offset: Tensor, mask: Tensor, weight: Tensor, _stride: int, _padding: int, _dilation: int
) -> Tensor:
    return x.new_empty(x.shape[0], weight.shape[0], mask.shape[2], mask.shape[3])


@contextlib.contextmanager
def quiet_exporters() -> Iterator[None]:
    """Suppress warnings and log messages of torch's exporters about their internals and missing packages."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for category in (DeprecationWarning, FutureWarning, UserWarning):
                warnings.simplefilter("ignore", category)
            yield
    finally:
        logger.setLevel(level)
