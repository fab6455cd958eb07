"""Features of `aanet_fast`: a pretrained backbone, a feature pyramid, and descriptors of unit length."""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.features.efficientnet import EfficientNetLite0
from aanet.models.features.extractor import FeatureExtractor
from aanet.models.layers import biased_conv, conv2d, conv_relu
from aanet.ops.precision import at_least_float32

CHANNELS = (48, 64, 96)  # at 1/4, 1/8 and 1/16


class FastMaps(NamedTuple):
    """The features of one image by their use; lists are ordered fine to coarse."""

    descriptors: list[Tensor]  # [B, C_s, H/s, W/s] of unit length over the channels, for matching
    context: list[Tensor]  # [B, C_s, H/s, W/s], each channel standardized, for guiding the aggregation
    overview: Tensor  # [B, 96, H/32, W/32], standardized, for the global part of the aggregation
    details: Tensor  # [B, 16, H/2, W/2], for the upsampling

    def split(self) -> tuple[FastMaps, FastMaps]:
        """Return the first and the second half of the batch."""
        half = self.details.shape[0] // 2  # `chunk` would fix the size of the batch in exported networks
        first, second = (
            FastMaps(
                [x[part] for x in self.descriptors],
                [x[part] for x in self.context],
                self.overview[part],
                self.details[part],
            )
            for part in (slice(None, half), slice(half, None))
        )
        return first, second


class FastFeatures(FeatureExtractor):
    """Maps at 1/4, 1/8 and 1/16; a map at 1/32 widens their receptive field.

    All maps of the pyramid are standardized. The cosines do not depend on the scale of the features, which
    would otherwise grow without limit during training and saturate the gates of the aggregation.
    """

    def __init__(self) -> None:
        # A map of a single pixel cannot be standardized.
        super().__init__(scales=[4, 8, 16], out_channels=list(CHANNELS), size_multiple=32, minimum_size=64)
        self.backbone = EfficientNetLite0()
        self.detail_channels, *inputs = EfficientNetLite0.out_channels
        outputs = [*CHANNELS, CHANNELS[-1]]
        self.lateral = nn.ModuleList(
            biased_conv(given, wanted, kernel=1) for given, wanted in zip(inputs, outputs, strict=True)
        )
        self.coarser = nn.ModuleList(
            biased_conv(given, wanted, kernel=1) for given, wanted in zip(outputs[1:], CHANNELS, strict=True)
        )
        self.smooth = nn.ModuleList(conv_relu(channels, channels) for channels in CHANNELS)
        self.describe = nn.ModuleList(conv2d(channels, channels, kernel=1) for channels in CHANNELS)

    def forward(self, image: Tensor) -> FastMaps:
        details, *maps = self.backbone(image)
        overview = merged = standardize(F.relu(self.lateral[-1](maps[-1])))  # [B, 96, H/32, W/32]
        context: list[Tensor] = []
        for level in reversed(range(len(CHANNELS))):
            above = self.coarser[level](merged)
            above = F.interpolate(above, maps[level].shape[2:], mode="bilinear", align_corners=False)
            merged = standardize(self.smooth[level](F.relu(self.lateral[level](maps[level]) + above)))
            context.insert(0, merged)
        descriptors = [unit_length(describe(x)) for describe, x in zip(self.describe, context, strict=True)]
        return FastMaps(descriptors, context, overview, details)

    def slow_to_train(self) -> list[nn.Module]:
        return self.backbone.slow_to_train()


def standardize(features: Tensor) -> Tensor:
    """Subtract each channel's mean over the image and divide by its standard deviation."""
    return F.instance_norm(at_least_float32(features), eps=1e-3)


def unit_length(features: Tensor) -> Tensor:
    """Standardize each channel and scale each pixel's vector to length 1.

    The product of two such vectors is a cosine, which does not depend on exposure and contrast.
    """
    return F.normalize(standardize(features), dim=1, eps=1e-3)
