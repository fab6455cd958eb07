"""What every feature extractor says about itself, so that the next parts can be built to fit."""

from __future__ import annotations

from torch import nn

from aanet.inference.size_rule import SizeRule


class FeatureExtractor(nn.Module):
    """The base of what maps an image [B, 3, H, W] to feature maps, fine to coarse.

    Attributes:
        scales: For each map, by how much it is smaller than the image (3 means a third of its width).
        out_channels: For each map, its number of channels.
        sizes: What H and W must be multiples of, and the least that they may be.
    """

    def __init__(
        self, scales: list[int], out_channels: list[int], size_multiple: int, minimum_size: int = 1
    ) -> None:
        super().__init__()
        self.scales = scales
        self.out_channels = out_channels
        self.sizes = SizeRule(size_multiple, max(minimum_size, size_multiple))

    def slow_to_train(self) -> list[nn.Module]:
        """Layers of a pretrained backbone that may stay as they are, because their gradients take long."""
        return []
