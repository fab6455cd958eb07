"""The computation that every engine runs: images in 0 … 1 → disparity and confidence at full size."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.inference.hints import InferenceHints
from aanet.inference.spec import NetworkSpec
from aanet.models import zoo
from aanet.models.network import StereoNetwork, normalize
from aanet.models.regression import confidence


class InferenceGraph(nn.Module):
    """A network with image normalization before it and confidence after it."""

    def __init__(self, network: StereoNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """RGB in 0 … 1, [B, 3, H, W] each → disparity and confidence, [B, H, W] each."""
        output = self.network(normalize(left), normalize(right))
        coarse = confidence(output.scores, output.matched).unsqueeze(1)  # [B, 1, h, w]
        full = F.interpolate(coarse, left.shape[2:], mode="bilinear", align_corners=False).squeeze(1)
        return F.relu(output.disparity.float()), full  # GA-Net may predict slightly negative disparities


def spec_of(network: StereoNetwork, hints: InferenceHints | None = None) -> NetworkSpec:
    """Return the specification of a network that a matcher needs, including the hints of its weights."""
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
