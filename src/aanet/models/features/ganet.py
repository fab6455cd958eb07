"""GA-Net's features: two stacked hourglasses at a third of the image (Zhang et al., CVPR 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from aanet.models.features.extractor import FeatureExtractor
from aanet.models.hourglass import SIZE_MULTIPLE, StackedHourglass
from aanet.models.layers import WindowBuilder, conv_norm, relu


class GANetFeatures(FeatureExtractor):
    """One map of 32 channels at 1/3; `strong` builds the third layer and the narrowest ones."""

    def __init__(self, strong: WindowBuilder) -> None:
        super().__init__(scales=[3], out_channels=[32], size_multiple=3 * SIZE_MULTIPLE)
        self.start = nn.Sequential(
            conv_norm(3, 32, relu()),
            conv_norm(32, 32, relu(), kernel=5, stride=3),
            strong(32, 32, 1),
        )
        self.hourglass = StackedHourglass(strong)

    def forward(self, image: Tensor) -> list[Tensor]:
        return [self.hourglass(self.start(image))]  # [B, 32, H/3, W/3]
