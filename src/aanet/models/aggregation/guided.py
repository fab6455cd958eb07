"""Aggregation of `aanet_fast`: intra-scale and cross-scale aggregation guided by features of the left image.

As in AANet, volumes of three scales are aggregated within each scale and across scales. Unlike in AANet, the
coarse volumes have more channels than candidates, and features of the left image weight the channels at each
pixel. The output is a correction of the raw matching cost that starts at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.features.fast import FastMaps, unit_length
from aanet.models.layers import DeformConv2d, biased_conv, conv2d, conv_norm, relu, zeroed

TEMPERATURE = 20.0  # initial factor of the matching cosines before the softmax over candidates
ATTENTION_TEMPERATURE = 10.0  # initial factor of the cosines before the softmax over pixels


class GuidedIntraScaleAggregation(nn.Module):
    """Guided ISA: a residual bottleneck whose channels are weighted by features of the left image (eq. 4)."""

    def __init__(self, channels: int, guide_channels: int, window: nn.Module) -> None:
        super().__init__()
        self.reduce = conv_norm(channels, channels, relu(), kernel=1)
        self.window = nn.Sequential(window, nn.BatchNorm2d(channels), relu())
        self.gate = zeroed(biased_conv(guide_channels, channels, kernel=1))
        self.expand = zeroed(biased_conv(channels, channels, kernel=1))

    @classmethod
    def sparse(cls, channels: int, guide_channels: int) -> GuidedIntraScaleAggregation:
        """Nine adaptive points per pixel and group: deformable convolution."""
        return cls(channels, guide_channels, DeformConv2d(channels, channels))

    @classmethod
    def regular(cls, channels: int, guide_channels: int) -> GuidedIntraScaleAggregation:
        """A fixed 3×3 window: ordinary convolution."""
        return cls(channels, guide_channels, conv2d(channels, channels))

    def forward(self, x: Tensor, guide: Tensor) -> Tensor:
        weight = 2 * torch.sigmoid(self.gate(guide))  # starts as 1
        output: Tensor = x + self.expand(self.window(self.reduce(x)) * weight)
        return output


class NeighborScaleAggregation(nn.Module):
    """CSA between neighboring scales (eq. 5, 6), first fine to coarse, then coarse to fine."""

    def __init__(self, channels: Sequence[int]) -> None:
        super().__init__()
        pairs = list(pairwise(channels))
        self.to_coarser = nn.ModuleList(zeroed(biased_conv(f, c, stride=2)) for f, c in pairs)
        self.to_finer = nn.ModuleList(zeroed(biased_conv(c, f, kernel=1)) for f, c in pairs)

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        maps = list(maps)
        for scale, convolution in enumerate(self.to_coarser):
            maps[scale + 1] = maps[scale + 1] + convolution(F.relu(maps[scale]))
        for scale in reversed(range(len(self.to_finer))):
            finer = self.to_finer[scale](maps[scale + 1])
            maps[scale] = maps[scale] + F.interpolate(
                finer, maps[scale].shape[2:], mode="bilinear", align_corners=False
            )
        return maps


class GlobalAggregation(nn.Module):
    """Attention over the whole image at half the resolution of the costs: pixels of one surface share costs.

    A textureless wall can be matched at its border only. Windows of a fixed size do not reach across it;
    attention does, in one step, to all pixels with similar features in the left image. Queries and keys also
    depend on the costs, so that pixels with an ambiguous match can attend to those with a certain one. They
    have unit length: without it, nothing limits their growth, and attention narrows to a few pixels.
    """

    def __init__(self, channels: int, guide_channels: int, width: int = 64) -> None:
        super().__init__()
        self.query = biased_conv(guide_channels + channels, width, kernel=1)
        self.key = biased_conv(guide_channels + channels, width, kernel=1)
        self.log_temperature = nn.Parameter(torch.tensor(ATTENTION_TEMPERATURE).log())
        self.value = biased_conv(channels, channels, kernel=1)
        self.expand = zeroed(biased_conv(channels, channels, kernel=1))

    def forward(self, x: Tensor, guide: Tensor) -> Tensor:
        """Costs [B, C, H, W] and left features [B, G, H/2, W/2] → corrected costs."""
        costs = F.avg_pool2d(F.relu(x), 2)  # [B, C, H/2, W/2]
        both = torch.cat((guide, costs), dim=1)
        query, key = unit_length(self.query(both)), unit_length(self.key(both))
        query, key, value = (x.flatten(2) for x in (query, key, self.value(costs)))
        # Written out, because exporters to ONNX do not translate PyTorch's fused attention.
        alike = query.transpose(1, 2) @ key * self.log_temperature.exp()  # [B, N, N] for N = H/2 · W/2
        shared = value @ alike.softmax(dim=2).transpose(1, 2)  # [B, C, N]
        correction = self.expand(shared.reshape(costs.shape))
        output: Tensor = x + F.interpolate(correction, x.shape[2:], mode="bilinear", align_corners=False)
        return output


class GuidedAggregationModule(nn.Module):
    """Guided AAModule: intra-scale aggregation at every scale, global at the coarsest, then cross-scale."""

    def __init__(
        self,
        intra_scale: list[list[GuidedIntraScaleAggregation]],
        global_aggregation: GlobalAggregation,
        cross_scale: nn.Module,
    ) -> None:
        super().__init__()
        self.intra_scale = nn.ModuleList(nn.ModuleList(blocks) for blocks in intra_scale)
        self.global_aggregation = global_aggregation
        self.cross_scale = cross_scale

    def forward(self, maps: list[Tensor], guides: list[Tensor], overview: Tensor) -> list[Tensor]:
        within = []
        for blocks, x, guide in zip(self.intra_scale, maps, guides, strict=True):
            assert isinstance(blocks, nn.ModuleList)
            for block in blocks:
                x = block(x, guide)
            within.append(x)
        within[-1] = self.global_aggregation(within[-1], overview)
        across: list[Tensor] = self.cross_scale(within)
        return across


class GuidedAggregation(nn.Module):
    """Volumes [B, D_s, H_s, W_s] and left features of three scales → scores [B, D, H, W] of the finest."""

    def __init__(
        self, candidates: Sequence[int], channels: Sequence[int], stack: list[GuidedAggregationModule]
    ) -> None:
        super().__init__()
        # Turns the finest volume into scores.
        self.log_temperature = nn.Parameter(torch.tensor(TEMPERATURE).log())
        self.widen = nn.ModuleList(
            conv_norm(count, wide, kernel=1) for count, wide in zip(candidates, channels, strict=True)
        )
        pairs = pairwise(channels)
        self.halve = nn.ModuleList(conv_norm(fine, coarse, stride=2) for fine, coarse in pairs)
        self.stack = nn.ModuleList(stack)
        self.correct = zeroed(biased_conv(channels[0], candidates[0]))

    def forward(self, volumes: list[Tensor], left: FastMaps) -> list[Tensor]:
        maps: list[Tensor] = []
        for scale, (volume, widen) in enumerate(zip(volumes, self.widen, strict=True)):
            wide = widen(volume)
            if scale:
                wide = wide + self.halve[scale - 1](maps[-1])
            maps.append(F.relu(wide))  # [B, C_s, H_s, W_s]
        for module in self.stack:
            maps = module(maps, left.context, left.overview)
        return [volumes[0] * self.log_temperature.exp() + self.correct(F.relu(maps[0]))]
