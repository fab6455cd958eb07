"""GA-Net's aggregation: guided layers between 3D convolutions (Zhang et al., CVPR 2019).

This is GANet-deep without its four quarter-scale SGA blocks, the network of the paper's table 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.hourglass import Merge
from aanet.models.layers import conv3d_norm, conv_norm, relu
from aanet.models.regression import expected_candidate
from aanet.ops.guided import (
    LGA_WEIGHTS,
    SGA_DIRECTIONS,
    SGA_WEIGHTS,
    local_guided_aggregation,
    semi_global_aggregation,
)
from aanet.ops.precision import at_least_float32

CHANNELS = 32
SGA_BLOCKS = 3


@dataclass
class Guidance:
    """What the image says about how to aggregate."""

    semi_global: list[Tensor]  # per SGA block [B, 4, C, 5, H/3, W/3]
    local: list[Tensor]  # before and behind the softmin, [B, 75, H, W]


class GuidanceNetwork(nn.Module):
    """Predicts the weights of all guided layers from the left image and its features.

    The publications leave the depth of this part open; two convolutions before each prediction bring the
    whole network to 4.58 M parameters, of 4.60 M published.
    """

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale
        self.image = nn.Sequential(conv_norm(3, 16, relu()), conv_norm(16, 32, relu()))
        self.feature = nn.Conv2d(32, 32, kernel_size=3, padding=1, bias=False)
        self.feature_norm = nn.Sequential(nn.BatchNorm2d(32), relu())
        self.full = conv_norm(64, 16, relu())
        first = conv_norm(16, 32, relu(), kernel=5, stride=scale)
        self.third = nn.ModuleList(
            nn.Sequential(first if i == 0 else conv_norm(32, 32, relu()), conv_norm(32, 32, relu()))
            for i in range(SGA_BLOCKS)
        )
        count = SGA_DIRECTIONS * CHANNELS * SGA_WEIGHTS
        self.semi_global = nn.ModuleList(
            nn.Conv2d(32, count, kernel_size=3, padding=1, bias=False) for _ in range(SGA_BLOCKS)
        )
        self.local = nn.ModuleList(
            nn.Sequential(
                conv_norm(16, 16, relu()), nn.Conv2d(16, LGA_WEIGHTS, kernel_size=3, padding=1, bias=False)
            )
            for _ in range(2)
        )

    def forward(self, image: Tensor, feature: Tensor) -> Guidance:
        size = image.shape[2:]
        upsampled = F.interpolate(self.feature(feature), size, mode="bilinear", align_corners=False)
        full = self.full(torch.cat((self.image(image), self.feature_norm(upsampled)), dim=1))
        third = full
        semi_global = []
        for conv, predict in zip(self.third, self.semi_global, strict=True):
            third = conv(third)
            weights = predict(third).unflatten(1, (SGA_DIRECTIONS, CHANNELS, SGA_WEIGHTS))
            semi_global.append(F.normalize(weights, p=1, dim=3))
        local = [F.normalize(predict(full), p=1, dim=1) for predict in self.local]
        return Guidance(semi_global, local)


class SemiGlobalBlock(nn.Module):
    """SGA, then a 3D convolution, and a shortcut around both."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.Sequential(nn.BatchNorm3d(channels), relu())
        self.refine = conv3d_norm(channels, channels)

    def forward(self, volume: Tensor, weights: Tensor) -> Tensor:
        aggregated = self.norm(semi_global_aggregation(volume, weights))
        return F.relu(self.refine(aggregated) + volume)


def _up(inputs: int, outputs: int) -> Merge:
    # Kernel 4 doubles height and width exactly; GA-Net keeps kernel 3 along the candidates.
    double = nn.ConvTranspose3d(
        inputs, outputs, (3, 4, 4), stride=2, padding=1, output_padding=(1, 0, 0), bias=False
    )
    resample = nn.Sequential(double, nn.BatchNorm3d(outputs), relu())
    return Merge(resample, conv3d_norm(2 * outputs, outputs, relu()))


def _down(inputs: int, outputs: int) -> Merge:
    return Merge(conv3d_norm(inputs, outputs, relu(), stride=2), conv3d_norm(2 * outputs, outputs, relu()))


class GANetAggregation(nn.Module):
    """[B, 64, D/3, H/3, W/3] → costs of the same size, of the last `outputs` SGA blocks, last one first."""

    size_multiple = 4

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.start = conv3d_norm(2 * CHANNELS, CHANNELS, relu())
        self.down_first = nn.ModuleList(
            [conv3d_norm(32, 48, relu(), stride=2), conv3d_norm(48, 64, relu(), stride=2)]
        )
        self.up_first = nn.ModuleList([_up(64, 48), _up(48, 32)])
        self.down_second = nn.ModuleList([_down(32, 48), _down(48, 64)])
        self.up_second = nn.ModuleList([_up(64, 48), _up(48, 32)])
        self.semi_global = nn.ModuleList(SemiGlobalBlock(CHANNELS) for _ in range(SGA_BLOCKS))
        self.cost = nn.ModuleList(
            nn.Conv3d(CHANNELS, 1, kernel_size=3, padding=1, bias=False) for _ in range(outputs)
        )

    def forward(self, volumes: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
        (volume,) = volumes
        full = self.semi_global[0](self.start(volume), weights[0])
        aggregated = [full]
        half = self.down_first[0](full)
        quarter = self.down_first[1](half)
        half = self.up_first[0](quarter, half)
        full = self.semi_global[1](self.up_first[1](half, full), weights[1])
        aggregated.append(full)
        half = self.down_second[0](full, half)
        quarter = self.down_second[1](half, quarter)
        half = self.up_second[0](quarter, half)
        aggregated.append(self.semi_global[2](self.up_second[1](half, full), weights[2]))
        latest = aggregated[: -self.outputs - 1 : -1]
        return [cost(volume) for cost, volume in zip(self.cost, latest, strict=True)]  # [B, 1, D/3, H/3, W/3]


class UpsampledRegression(nn.Module):
    """Costs [B, 1, D/3, H/3, W/3] → disparity [B, H, W], over the candidates 0 … D."""

    def __init__(self, max_disparity: int) -> None:
        super().__init__()
        self.candidates = max_disparity + 1

    def upsampled_scores(self, cost: Tensor, size: torch.Size) -> Tensor:
        """Return scores [B, D + 1, H, W]."""
        full = F.interpolate(
            at_least_float32(cost), (self.candidates, *size), mode="trilinear", align_corners=False
        )
        return -full.squeeze(1)  # a low cost is a high score

    def forward(self, cost: Tensor, size: torch.Size) -> Tensor:
        return expected_candidate(torch.softmax(self.upsampled_scores(cost, size), dim=1))

    def guided(self, cost: Tensor, local: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Regress between two LGA layers; returns the disparity and the scores before the softmax."""
        before, behind = local
        scores = local_guided_aggregation(self.upsampled_scores(cost, before.shape[2:]), before)
        probability = local_guided_aggregation(torch.softmax(scores, dim=1), behind)
        return expected_candidate(F.normalize(probability, p=1, dim=1)), scores
