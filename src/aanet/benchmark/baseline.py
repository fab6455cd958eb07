"""The baseline of the benchmarks: the networks as the published code would run them on a CPU.

NCHW tensors, a Python loop over the disparity candidates, and deformable convolution by `grid_sample` in
place of the CUDA operator.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from aanet.models.cost_volume import CorrelationPyramid
from aanet.models.network import StereoNetwork, StereoOutput
from aanet.ops.deform_conv import deform_conv2d_grid, using_deform_conv


class LoopCorrelationPyramid(CorrelationPyramid):
    """`CorrelationPyramid` with a loop over the candidates."""

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        """Return one volume per scale."""
        return [
            loop_correlation(a, b, count) for a, b, count in zip(left, right, self.candidates, strict=False)
        ]


def loop_correlation(left: Tensor, right: Tensor, candidates: int) -> Tensor:
    """Equation 2 with a loop over the candidates; returns the values of `correlation_volume`."""
    batch, _, height, width = left.shape
    volume = left.new_zeros(batch, candidates, height, width)
    for d in range(min(candidates, width)):
        volume[:, d, :, d:] = (left[..., d:] * right[..., : width - d]).mean(dim=1)
    return volume


def to_baseline(network: StereoNetwork) -> StereoNetwork:
    """Change a network in place to NCHW and the loop; the caller chooses the deformable convolution."""
    for parameter in network.parameters():
        parameter.data = parameter.data.contiguous()
    if isinstance(network.cost_volume, CorrelationPyramid):
        network.cost_volume = LoopCorrelationPyramid(network.cost_volume.candidates)
    return network


def as_baseline(network: StereoNetwork) -> Callable[[Tensor, Tensor], StereoOutput]:
    """Change a network to the baseline in place, and return a function that runs it."""
    to_baseline(network)

    def run(left: Tensor, right: Tensor) -> StereoOutput:
        with using_deform_conv(deform_conv2d_grid):
            output: StereoOutput = network(left.contiguous(), right.contiguous())
        return output

    return run


def random_pair(size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Two normalized noise images [1, 3, H, W]; time and memory do not depend on the content."""
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, 1, 3, *size, generator=generator).unbind()
    return left, right
