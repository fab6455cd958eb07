"""GA-Net's features: two stacked hourglasses at 1/3 resolution (Zhang et al., CVPR 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from aanet.models.features.extractor import FeatureExtractor
from aanet.models.hourglass import SIZE_MULTIPLE, StackedHourglass
from aanet.models.layers import WindowBuilder, conv_norm, relu


class GANetFeatures(FeatureExtractor):
    """One map of 32 channels at 1/3; `window` builds the third layer and the coarsest ones."""

    def __init__(self, window: WindowBuilder) -> None:
        super().__init__(scales=[3], out_channels=[32], size_multiple=3 * SIZE_MULTIPLE)
        self.start = nn.Sequential(
            conv_norm(3, 32, relu()),
            conv_norm(32, 32, relu(), kernel=5, stride=3),
            window(32, 32, 1),
        )
        self.hourglass = StackedHourglass(window)

    def forward(self, image: Tensor) -> list[Tensor]:
        return [self.hourglass(self.start(image))]  # [B, 32, H/3, W/3]
