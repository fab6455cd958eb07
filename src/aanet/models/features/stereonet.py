"""StereoNet's features: strided 5×5 convolutions, then six residual blocks (Khamis et al., ECCV 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from aanet.models.features.extractor import FeatureExtractor
from aanet.models.layers import conv2d, conv_norm, leaky_residual, relu


class StereoNetFeatures(FeatureExtractor):
    """One map of 32 channels at 1/2^`halvings`."""

    def __init__(self, halvings: int) -> None:
        scale = 2**halvings
        super().__init__(scales=[scale], out_channels=[32], size_multiple=scale)
        self.downsample = nn.Sequential(
            *(conv_norm(3 if i == 0 else 32, 32, relu(), kernel=5, stride=2) for i in range(halvings))
        )
        self.blocks = nn.Sequential(*(leaky_residual(32) for _ in range(6)))
        self.last = conv2d(32, 32)

    def forward(self, image: Tensor) -> list[Tensor]:
        return [self.last(self.blocks(self.downsample(image)))]  # [B, 32, H/2^n, W/2^n]
