"""GA-Net (Zhang et al., CVPR 2019): a guidance network predicts aggregation weights from the left image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.aggregation.ganet3d import CHANNELS, SGA_BLOCKS
from aanet.models.features import FeatureExtractor
from aanet.models.layers import conv_norm, relu
from aanet.models.network import Architecture, FeaturePair, StereoNetwork
from aanet.models.regression import expected_candidate
from aanet.ops.guided import LGA_WEIGHTS, SGA_DIRECTIONS, SGA_WEIGHTS, local_guided_aggregation
from aanet.ops.precision import at_least_float32


@dataclass
class Guidance:
    """The weights of all guided aggregation layers."""

    semi_global: list[Tensor]  # one per SGA block, [B, 4, C, 5, H/3, W/3]
    local: list[Tensor]  # of the LGA layers before and after the softmin, [B, 75, H, W]


class GuidanceNetwork(nn.Module):
    """Predicts the weights of all guided layers from the left image and its features.

    The publications do not specify the depth of this part. With two convolutions before each prediction the
    whole network has 4.58 M parameters; the published number is 4.60 M.
    """

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale
        self.image = nn.Sequential(conv_norm(3, 16, relu()), conv_norm(16, 32, relu()))
        self.feature = nn.Conv2d(32, 32, kernel_size=3, padding=1, bias=False)
        self.feature_norm = nn.Sequential(nn.BatchNorm2d(32), relu())
        self.full = conv_norm(64, 16, relu())
        first = conv_norm(16, 32, relu(), kernel=5, stride=scale)
        self.third = nn.ModuleList(
            nn.Sequential(first if i == 0 else conv_norm(32, 32, relu()), conv_norm(32, 32, relu()))
            for i in range(SGA_BLOCKS)
        )
        count = SGA_DIRECTIONS * CHANNELS * SGA_WEIGHTS
        self.semi_global = nn.ModuleList(
            nn.Conv2d(32, count, kernel_size=3, padding=1, bias=False) for _ in range(SGA_BLOCKS)
        )
        self.local = nn.ModuleList(
            nn.Sequential(
                conv_norm(16, 16, relu()), nn.Conv2d(16, LGA_WEIGHTS, kernel_size=3, padding=1, bias=False)
            )
            for _ in range(2)
        )

    def forward(self, image: Tensor, feature: Tensor) -> Guidance:
        size = image.shape[2:]
        upsampled = F.interpolate(self.feature(feature), size, mode="bilinear", align_corners=False)
        full = self.full(torch.cat((self.image(image), self.feature_norm(upsampled)), dim=1))
        third = full
        semi_global = []
        for conv, predict in zip(self.third, self.semi_global, strict=True):
            third = conv(third)
            weights = predict(third).unflatten(1, (SGA_DIRECTIONS, CHANNELS, SGA_WEIGHTS))
            semi_global.append(F.normalize(weights, p=1, dim=3))
        local = [F.normalize(predict(full), p=1, dim=1) for predict in self.local]
        return Guidance(semi_global, local)


class GuidedMaps(NamedTuple):
    """The features of the left image and the guidance predicted from them."""

    maps: list[Tensor]
    guidance: Guidance


class GuidedRegression(nn.Module):
    """Costs [B, 1, D/3, H/3, W/3] → disparity [B, H, W], between two LGA layers."""

    def __init__(self, max_disparity: int) -> None:
        super().__init__()
        self.candidates = max_disparity + 1

    def scores(self, costs: list[Tensor], local: list[Tensor]) -> list[Tensor]:
        """Return scores [B, D + 1, H, W], last block first like the costs; only the last block is guided."""
        size = local[0].shape[2:]
        last, *earlier = (self._upsample(cost, size) for cost in costs)
        return [local_guided_aggregation(last, local[0]), *earlier]

    def _upsample(self, cost: Tensor, size: torch.Size) -> Tensor:
        full = F.interpolate(
            at_least_float32(cost), (self.candidates, *size), mode="trilinear", align_corners=False
        )
        return -full.squeeze(1)  # a low cost is a high score

    def forward(self, scores: list[Tensor], local: list[Tensor]) -> list[Tensor]:
        last, *earlier = (torch.softmax(volume, dim=1) for volume in scores)
        guided = F.normalize(local_guided_aggregation(last, local[1]), p=1, dim=1)
        return [expected_candidate(probability) for probability in (*reversed(earlier), guided)]


class GuidedStereoNetwork(StereoNetwork):
    """A network whose aggregation and regression are guided by the left image."""

    def __init__(
        self,
        architecture: Architecture,
        features: FeatureExtractor,
        cost_volume: nn.Module,
        guidance: GuidanceNetwork,
        aggregation: nn.Module,
        regression: GuidedRegression,
        refinement: nn.Module,
    ) -> None:
        super().__init__(architecture, features, cost_volume, aggregation, regression, refinement)
        self.guidance = guidance
        self.regression: GuidedRegression

    def extract(self, left: Tensor, right: Tensor) -> FeaturePair:
        maps = super().extract(left, right)
        return FeaturePair(GuidedMaps(maps.left, self.guidance(left, maps.left[0])), maps.right)

    def cost_volumes(self, features: FeaturePair) -> list[Tensor]:
        volumes: list[Tensor] = self.cost_volume(features.left.maps, features.right)
        return volumes

    def aggregate(self, volumes: list[Tensor], features: FeaturePair) -> list[Tensor]:
        guidance: Guidance = features.left.guidance
        costs: list[Tensor] = self.aggregation(volumes, guidance.semi_global)
        return self.regression.scores(costs, guidance.local)

    def regress(self, scores: list[Tensor], features: FeaturePair) -> list[Tensor]:
        disparities: list[Tensor] = self.regression(scores, features.left.guidance.local)
        return disparities
