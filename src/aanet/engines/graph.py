"""What every engine computes: images in 0 … 1 → disparity and confidence at the size of the image."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.inference.hints import InferenceHints
from aanet.inference.spec import NetworkSpec
from aanet.models import zoo
from aanet.models.network import StereoNetwork, normalize
from aanet.models.regression import confidence


class InferenceGraph(nn.Module):
    """A network with its normalization before it and its confidence behind it."""

    def __init__(self, network: StereoNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """RGB in 0 … 1, [B, 3, H, W] each → disparity and confidence, [B, H, W] each."""
        output = self.network(normalize(left), normalize(right))
        sure = confidence(output.scores, output.matched).unsqueeze(1)  # [B, 1, h, w]
        sure = F.interpolate(sure, left.shape[2:], mode="bilinear", align_corners=False).squeeze(1)
        return F.relu(output.disparity.float()), sure  # GA-Net may fall below zero by a little


def spec_of(network: StereoNetwork, hints: InferenceHints | None = None) -> NetworkSpec:
    """Return what a matcher must know of a network whose weights come with these hints."""
    card = zoo.card(network.architecture.builder)
    return NetworkSpec(
        name=network.architecture.builder,
        max_disparity=network.max_disparity,
        bytes_per_pixel=card.bytes_per_pixel,
        correlates=card.correlates,
        candidate_step=network.features.scales[0],
        sizes=network.sizes,
        hints=hints or InferenceHints(),
    )
