"""PSMNet's features: a residual network with spatial pyramid pooling (Chang and Chen, CVPR 2018)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.features.extractor import FeatureExtractor
from aanet.models.layers import ResidualBlock, conv2d, conv_norm, relu

POOLING = (64, 32, 16, 8)


def _stage(inputs: int, outputs: int, blocks: int, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    first = ResidualBlock(inputs, outputs, relu(), nn.Identity(), stride, dilation)
    rest = (
        ResidualBlock(outputs, outputs, relu(), nn.Identity(), dilation=dilation) for _ in range(blocks - 1)
    )
    return nn.Sequential(first, *rest)


class PSMNetFeatures(FeatureExtractor):
    """One map of 32 channels at 1/4. The largest pooling window requires images of at least 256 pixels."""

    def __init__(self) -> None:
        super().__init__(scales=[4], out_channels=[32], size_multiple=4, minimum_size=4 * max(POOLING))
        self.start = nn.Sequential(
            conv_norm(3, 32, relu(), stride=2), conv_norm(32, 32, relu()), conv_norm(32, 32, relu())
        )
        self.quarter = nn.Sequential(_stage(32, 32, 3), _stage(32, 64, 16, stride=2))
        self.context = nn.Sequential(_stage(64, 128, 3), _stage(128, 128, 3, dilation=2))
        self.pooling = nn.ModuleList(
            nn.Sequential(nn.AvgPool2d(window), conv_norm(128, 32, relu(), kernel=1)) for window in POOLING
        )
        self.fuse = nn.Sequential(conv_norm(320, 128, relu()), conv2d(128, 32, kernel=1))

    def forward(self, image: Tensor) -> list[Tensor]:
        quarter = self.quarter(self.start(image))  # [B, 64, H/4, W/4]
        context = self.context(quarter)  # [B, 128, H/4, W/4]
        size = context.shape[2:]
        pooled = [
            F.interpolate(pool(context), size, mode="bilinear", align_corners=False) for pool in self.pooling
        ]
        return [self.fuse(torch.cat((quarter, context, *reversed(pooled)), dim=1))]  # [B, 32, H/4, W/4]
