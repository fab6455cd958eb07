"""GC-Net's features: eight residual blocks at 1/2 resolution (Kendall et al., ICCV 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from aanet.models.features.extractor import FeatureExtractor
from aanet.models.layers import ResidualBlock, conv2d, conv_norm, relu


class GCNetFeatures(FeatureExtractor):
    """One map of 32 channels at 1/2."""

    def __init__(self) -> None:
        super().__init__(scales=[2], out_channels=[32], size_multiple=2)
        self.start = conv_norm(3, 32, relu(), kernel=5, stride=2)
        self.blocks = nn.Sequential(*(ResidualBlock(32, 32, relu(), nn.Identity()) for _ in range(8)))
        self.last = conv2d(32, 32)

    def forward(self, image: Tensor) -> list[Tensor]:
        return [self.last(self.blocks(self.start(image)))]  # [B, 32, H/2, W/2]
