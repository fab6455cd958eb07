"""Adaptive aggregation, the paper's contribution: within a scale (eq. 3, 4) and across scales (eq. 5, 6).

In this module the channels of a tensor [B, D, H, W] are disparity candidates, and lists are ordered fine to
coarse.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.layers import Bottleneck, DeformConv2d, conv2d, conv_norm, leaky_relu


class IntraScaleAggregation(Bottleneck):
    """ISA: a bottleneck with one channel per candidate; `window` samples the neighborhood (eq. 4)."""

    def __init__(self, candidates: int, window: nn.Module) -> None:
        super().__init__(candidates, candidates, candidates, window)

    @classmethod
    def sparse(cls, candidates: int) -> IntraScaleAggregation:
        """Nine adaptive points per pixel and group: deformable convolution."""
        return cls(candidates, DeformConv2d(candidates, candidates))

    @classmethod
    def regular(cls, candidates: int) -> IntraScaleAggregation:
        """A fixed 3×3 window: ordinary convolution."""
        return cls(candidates, conv2d(candidates, candidates))


class CrossScaleAggregation(nn.Module):
    """CSA: every output scale is the sum of all input scales, each resampled to it (eq. 5, 6)."""

    def __init__(self, candidates: list[int], output_scales: int) -> None:
        super().__init__()
        self.paths = nn.ModuleList(
            nn.ModuleList(_path(candidates, source, target) for source in range(len(candidates)))
            for target in range(output_scales)
        )
        self.activation = leaky_relu()

    def forward(self, volumes: list[Tensor]) -> list[Tensor]:
        outputs = []
        for target, paths in zip(volumes, self.paths, strict=False):  # the last module may have fewer outputs
            assert isinstance(paths, nn.ModuleList)
            parts = [_match_size(path(volume), target) for path, volume in zip(paths, volumes, strict=True)]
            outputs.append(self.activation(functools.reduce(torch.add, parts)))
        return outputs


def _path(candidates: list[int], source: int, target: int) -> nn.Module:
    """Build f_k of eq. 6, from scale k = `source` to scale s = `target` (0 is the finest)."""
    inputs, outputs = candidates[source], candidates[target]
    if source == target:
        return nn.Identity()
    if source > target:
        return conv_norm(inputs, outputs, kernel=1)  # before the upsampling, which is cheaper
    halvings = [conv_norm(inputs, inputs, leaky_relu(), stride=2) for _ in range(target - source - 1)]
    return nn.Sequential(*halvings, conv_norm(inputs, outputs, stride=2))


def _match_size(volume: Tensor, target: Tensor) -> Tensor:
    if volume.shape[2:] == target.shape[2:]:
        return volume
    return F.interpolate(volume, target.shape[2:], mode="bilinear", align_corners=False)


class AdaptiveAggregationModule(nn.Module):
    """AAModule: intra-scale aggregation at every scale, then cross-scale aggregation."""

    def __init__(self, intra_scale: list[IntraScaleAggregation], cross_scale: nn.Module) -> None:
        super().__init__()
        self.intra_scale = nn.ModuleList(intra_scale)
        self.cross_scale = cross_scale

    def forward(self, volumes: list[Tensor]) -> list[Tensor]:
        within = [isa(volume) for isa, volume in zip(self.intra_scale, volumes, strict=True)]
        across: list[Tensor] = self.cross_scale(within)
        return across


class AdaptiveAggregation(nn.Module):
    """A stack of AAModules, followed by a 1×1 convolution per output scale that computes its scores."""

    def __init__(self, stack: list[AdaptiveAggregationModule], output_candidates: list[int]) -> None:
        super().__init__()
        self.input_scales = len(stack[0].intra_scale)
        self.stack = nn.ModuleList(stack)
        self.scores = nn.ModuleList(nn.Conv2d(count, count, kernel_size=1) for count in output_candidates)

    def forward(self, volumes: list[Tensor]) -> list[Tensor]:
        for module in self.stack:
            volumes = module(volumes)
        return [scores(volume) for scores, volume in zip(self.scores, volumes, strict=True)]
