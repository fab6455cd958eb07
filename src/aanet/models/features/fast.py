"""Features of `aanet_fast`: a pretrained backbone, a pyramid, and descriptors whose product is a cosine."""

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
    """What the features of one image are used for; lists run fine to coarse."""

    descriptors: list[Tensor]  # [B, C_s, H/s, W/s] of unit length over the channels, to be compared
    context: list[Tensor]  # [B, C_s, H/s, W/s], each channel standardized, guides the aggregation
    details: Tensor  # [B, 16, H/2, W/2], for the upsampling

    def split(self) -> tuple[FastMaps, FastMaps]:
        """The first and the second half of the batch."""
        descriptors, context = ([x.chunk(2) for x in maps] for maps in (self.descriptors, self.context))
        details = self.details.chunk(2)
        first, second = (
            FastMaps([x[i] for x in descriptors], [x[i] for x in context], details[i]) for i in range(2)
        )
        return first, second


class FastFeatures(FeatureExtractor):
    """Maps at 1/4, 1/8 and 1/16; a map at 1/32 gives them a wide view.

    Every map of the pyramid is standardized.  The matching cost is invariant to the scale of the features, so
    that without it nothing would keep them from growing in training until whatever else reads them saturates.
    """

    def __init__(self) -> None:
        super().__init__(scales=[4, 8, 16], out_channels=list(CHANNELS), size_multiple=32)
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
        merged = standardize(F.relu(self.lateral[-1](maps[-1])))  # [B, 96, H/32, W/32]
        context: list[Tensor] = []
        for level in reversed(range(len(CHANNELS))):
            above = self.coarser[level](merged)
            above = F.interpolate(above, maps[level].shape[2:], mode="bilinear", align_corners=False)
            merged = standardize(self.smooth[level](F.relu(self.lateral[level](maps[level]) + above)))
            context.insert(0, merged)
        descriptors = [unit_length(describe(x)) for describe, x in zip(self.describe, context, strict=True)]
        return FastMaps(descriptors, context, details)

    def slow_to_train(self) -> list[nn.Module]:
        return self.backbone.slow_to_train()


def standardize(features: Tensor) -> Tensor:
    """Subtract each channel's mean over the image and divide by its standard deviation."""
    return F.instance_norm(at_least_float32(features), eps=1e-3)


def unit_length(features: Tensor) -> Tensor:
    """Standardize the features, then scale the vector of each pixel to length 1.

    The product of two such vectors is a cosine, which neither exposure nor contrast changes.
    """
    return F.normalize(standardize(features), dim=1, eps=1e-3)
