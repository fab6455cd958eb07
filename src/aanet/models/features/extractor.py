"""The base class of feature extractors, with the properties from which the next parts are built."""

from __future__ import annotations

from torch import nn

from aanet.inference.size_rule import SizeRule


class FeatureExtractor(nn.Module):
    """Base class of modules that map an image [B, 3, H, W] to feature maps, fine to coarse.

    Attributes:
        scales: The downsampling factor of each map (3 means a third of the width).
        out_channels: The number of channels of each map.
        sizes: The multiple and the minimum that H and W must satisfy.
    """

    def __init__(
        self, scales: list[int], out_channels: list[int], size_multiple: int, minimum_size: int = 1
    ) -> None:
        super().__init__()
        self.scales = scales
        self.out_channels = out_channels
        self.sizes = SizeRule(size_multiple, max(minimum_size, size_multiple))

    def slow_to_train(self) -> list[nn.Module]:
        """Layers of a pretrained backbone that are worth freezing because their gradients are slow."""
        return []
