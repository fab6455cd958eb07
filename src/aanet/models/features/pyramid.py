"""A light pyramid on top of any single-scale extractor, for the adaptive aggregation networks."""

from __future__ import annotations

from torch import Tensor, nn

from aanet.models.features.extractor import FeatureExtractor
from aanet.models.layers import conv_norm, leaky_relu


def _halve(channels: int) -> nn.Sequential:
    """Half the size, twice the channels."""
    return nn.Sequential(
        conv_norm(channels, 2 * channels, leaky_relu(), stride=2),
        conv_norm(2 * channels, 2 * channels, leaky_relu(), kernel=1),
    )


class PyramidFeatures(FeatureExtractor):
    """The map of `base` and two coarser maps computed from it."""

    def __init__(self, base: FeatureExtractor) -> None:
        (scale,), (channels,) = base.scales, base.out_channels
        scales = [scale, 2 * scale, 4 * scale]
        multiple = max(base.sizes.multiple, scales[-1])
        super().__init__(scales, [channels, 2 * channels, 4 * channels], multiple, base.sizes.minimum)
        self.base = base
        self.coarser = nn.ModuleList([_halve(channels), _halve(2 * channels)])

    def forward(self, image: Tensor) -> list[Tensor]:
        maps: list[Tensor] = self.base(image)
        for halve in self.coarser:
            maps = [*maps, halve(maps[-1])]
        return maps
