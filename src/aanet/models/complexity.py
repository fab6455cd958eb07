"""Complexity of a network: parameters, multiply-accumulates under two rules, and the layer counts of table 2.

Everything runs on meta tensors, which have shapes but no values, so that even GC-Net takes little time and
no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from aanet.inference.size_rule import SizeRule
from aanet.models import zoo
from aanet.models.aggregation import CrossScaleAggregation
from aanet.models.aggregation.ganet3d import SemiGlobalBlock
from aanet.models.layers import DeformConv2d
from aanet.models.network import StereoNetwork

PAPER_SIZE = (576, 960)

_CONVOLUTIONS = (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d, DeformConv2d)


@dataclass(frozen=True)
class Complexity:
    """The complexity of one forward pass.

    Attributes:
        parameters: Number of weights and biases.
        paper_macs: Multiply-accumulates by the paper's rules (its "FLOPs"): features of one image only, no
            transposed 3D convolutions, transposed 2D convolutions counted per output element, and the
            sampling of deformable convolutions included.
        total_macs: All multiply-accumulates of all convolutions on both images; transposed convolutions are
            counted per input element.
        conv3d: Number of 3D convolutions, as table 2 counts them.
        deform_convs: Number of deformable convolutions.
        csa_modules: Number of cross-scale aggregation modules.
    """

    parameters: int
    paper_macs: int
    total_macs: int
    conv3d: int
    deform_convs: int
    csa_modules: int


def complexity(name: str, size: tuple[int, int] = PAPER_SIZE, max_disparity: int = 192) -> Complexity:
    """Compute the complexity of a network, without training heads, for one pair of this size."""
    with torch.device("meta"):
        network = zoo.card(name).build(max_disparity, False)
    paper, total = count_macs(network, size)
    return Complexity(
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        paper_macs=paper,
        total_macs=total,
        conv3d=_count_conv3d(network),
        deform_convs=_count(DeformConv2d, network),
        csa_modules=_count(CrossScaleAggregation, network),
    )


def size_rule(name: str) -> SizeRule:
    """Return the rule for the image sizes that a network of the zoo accepts."""
    with torch.device("meta"):
        network = zoo.card(name).build(192, False)
    return network.sizes


def count_macs(network: StereoNetwork, size: tuple[int, int]) -> tuple[int, int]:
    """Return the multiply-accumulates of a network on the meta device, by the paper's rules and in total."""
    feature_macs, other_macs, total = 0, 0, 0
    feature_modules = set(network.features.modules())

    def count(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        nonlocal feature_macs, other_macs, total
        macs = _paper_macs(module, inputs[0], output)
        if module in feature_modules:
            feature_macs += macs
        else:
            other_macs += macs
        total += _total_macs(module, inputs[0], output)

    handles = [m.register_forward_hook(count) for m in network.modules() if isinstance(m, _CONVOLUTIONS)]
    try:
        image = torch.empty(1, 3, *size, device="meta")
        network.eval()(image, image)
    finally:
        for handle in handles:
            handle.remove()
    return feature_macs // 2 + other_macs, total  # the features ran on both images


def _paper_macs(module: nn.Module, x: Tensor, output: Tensor) -> int:
    if isinstance(module, nn.ConvTranspose3d):
        return 0
    if isinstance(module, nn.ConvTranspose2d):
        return output.numel() * module.in_channels * _area(module)
    if isinstance(module, DeformConv2d):
        sampling = 3 * DeformConv2d.KERNEL**2 * x.numel()
        return _total_macs(module, x, output) + sampling
    return _total_macs(module, x, output)


def _total_macs(module: nn.Module, x: Tensor, output: Tensor) -> int:
    if isinstance(module, DeformConv2d):
        return output.numel() * module.inputs * DeformConv2d.KERNEL**2
    if isinstance(module, nn.ConvTranspose2d | nn.ConvTranspose3d):
        return x.numel() * module.out_channels * _area(module)
    assert isinstance(module, nn.Conv2d | nn.Conv3d)
    return output.numel() * module.in_channels // module.groups * _area(module)


def _area(module: nn.Conv2d | nn.Conv3d | nn.ConvTranspose2d | nn.ConvTranspose3d) -> int:
    area = 1
    for side in module.kernel_size:
        area *= side
    return area


def _count_conv3d(network: StereoNetwork) -> int:
    """Count 3D convolutions as table 2 does: without final one-channel convolutions and those in SGA blocks.

    GC-Net's last layer, a transposed convolution to one channel, is counted, as in its paper.
    """
    guided = {m for block in network.modules() if isinstance(block, SemiGlobalBlock) for m in block.modules()}
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv3d | nn.ConvTranspose3d)]
    return sum(
        m not in guided and (m.out_channels > 1 or isinstance(m, nn.ConvTranspose3d)) for m in convolutions
    )


def _count(kind: type[nn.Module], network: nn.Module) -> int:
    return sum(isinstance(module, kind) for module in network.modules())
