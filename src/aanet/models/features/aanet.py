"""AANet's features: a ResNet of 40 layers with six deformable convolutions, and a feature pyramid (FPN)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.features.extractor import FeatureExtractor
from aanet.models.layers import Bottleneck, DeformConv2d, WindowBuilder, conv2d, conv_norm, relu
from aanet.ops.conv import Conv2d

EXPANSION = 4


def _plain_window(inputs: int, outputs: int, stride: int) -> nn.Module:
    return conv2d(inputs, outputs, stride=stride)


def _stage(inputs: int, width: int, blocks: int, stride: int, window: WindowBuilder) -> nn.Sequential:
    outputs = EXPANSION * width
    first = Bottleneck(inputs, width, outputs, window(width, width, stride), stride)
    rest = (Bottleneck(outputs, width, outputs, window(width, width, 1)) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)


class FeaturePyramid(nn.Module):
    """FPN (Lin et al., CVPR 2017): coarser levels are upsampled and added to finer ones."""

    def __init__(self, inputs: list[int], outputs: int) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(channels, outputs, kernel_size=1) for channels in inputs)
        self.smooth = nn.ModuleList(
            nn.Sequential(Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), relu())
            for _ in inputs
        )

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        merged = [lateral(x) for lateral, x in zip(self.lateral, maps, strict=True)]
        for fine in reversed(range(len(merged) - 1)):
            coarser = F.interpolate(merged[fine + 1], scale_factor=2.0, mode="nearest")
            merged[fine] = merged[fine] + coarser
        return [smooth(x) for smooth, x in zip(self.smooth, merged, strict=True)]


class AANetFeatures(FeatureExtractor):
    """Maps at 1/3, 1/6 and 1/12 resolution, 128 channels each."""

    def __init__(self) -> None:
        super().__init__(scales=[3, 6, 12], out_channels=[128, 128, 128], size_multiple=12)
        self.stem = conv_norm(3, 32, relu(), kernel=7, stride=3)
        self.stages = nn.ModuleList(
            [
                _stage(32, 32, blocks=3, stride=1, window=_plain_window),
                _stage(128, 64, blocks=4, stride=2, window=_plain_window),
                _stage(256, 128, blocks=6, stride=2, window=DeformConv2d),
            ]
        )
        self.pyramid = FeaturePyramid([128, 256, 512], 128)
        self._initialize()

    def _initialize(self) -> None:
        """Zero the last batch norm of plain bottlenecks, which then start as their shortcut, as in ResNet."""
        for module in self.stages.modules():
            if isinstance(module, nn.Conv2d) and module.bias is None:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if isinstance(module, Bottleneck) and not isinstance(module.window[0], DeformConv2d):
                norm = module.expand[1]
                assert isinstance(norm, nn.BatchNorm2d)
                nn.init.zeros_(norm.weight)

    def forward(self, image: Tensor) -> list[Tensor]:
        x = self.stem(image)  # [B, 32, H/3, W/3]
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)  # [B, 128, H/3, W/3], [B, 256, H/6, W/6], [B, 512, H/12, W/12]
        pyramid: list[Tensor] = self.pyramid(maps)
        return pyramid
