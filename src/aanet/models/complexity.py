"""What a network costs: parameters, multiply-accumulates under two rules, and the layers table 2 counts.

Everything runs on meta tensors: shapes without numbers, so that even GC-Net takes a moment and no memory.
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
    """The cost of one forward pass.

    Attributes:
        parameters: Weights and biases, as the network was built.
        paper_macs: By the paper's rules (its "FLOPs"): the features of one image, no transposed 3D
            convolutions, transposed 2D ones per output element, the sampling of deformable ones added.
        total_macs: All that are computed: both images, every convolution, transposed ones by their input.
        conv3d: 3D convolutions, as table 2 counts them.
        deform_convs: Deformable convolutions.
        csa_modules: Cross-scale aggregation modules.
    """

    parameters: int
    paper_macs: int
    total_macs: int
    conv3d: int
    deform_convs: int
    csa_modules: int


def complexity(name: str, size: tuple[int, int] = PAPER_SIZE) -> Complexity:
    """Measure a network with 192 disparities, without its training heads, for one pair of this size."""
    with torch.device("meta"):
        network = zoo.card(name).build(192, False)
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
    """Return the image sizes that a network of the zoo takes."""
    with torch.device("meta"):
        network = zoo.card(name).build(192, False)
    return network.sizes


def count_macs(network: StereoNetwork, size: tuple[int, int]) -> tuple[int, int]:
    """Return the multiply-accumulates of one pair, by the paper's rules and in total, for a meta network."""
    of_features, of_the_rest, total = 0, 0, 0
    feature_modules = set(network.features.modules())

    def count(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        nonlocal of_features, of_the_rest, total
        macs = _paper_macs(module, inputs[0], output)
        if module in feature_modules:
            of_features += macs
        else:
            of_the_rest += macs
        total += _total_macs(module, inputs[0], output)

    handles = [m.register_forward_hook(count) for m in network.modules() if isinstance(m, _CONVOLUTIONS)]
    try:
        image = torch.empty(1, 3, *size, device="meta")
        network.eval()(image, image)
    finally:
        for handle in handles:
            handle.remove()
    return of_features // 2 + of_the_rest, total  # the features ran on both images


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
    """Count as the publications do: not a final convolution to one channel, nor those inside SGA blocks.

    GC-Net's last layer is a transposed convolution to one channel, and its paper does count that one.
    """
    guided = {m for block in network.modules() if isinstance(block, SemiGlobalBlock) for m in block.modules()}
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv3d | nn.ConvTranspose3d)]
    return sum(
        m not in guided and (m.out_channels > 1 or isinstance(m, nn.ConvTranspose3d)) for m in convolutions
    )


def _count(kind: type[nn.Module], network: nn.Module) -> int:
    return sum(isinstance(module, kind) for module in network.modules())
