"""The network class of `aanet_fast`, in which image features also guide aggregation and refinement."""

from __future__ import annotations

import torch
from torch import Tensor

from aanet.models.features import FastMaps
from aanet.models.network import FeaturePair, StereoNetwork


class ContextStereoNetwork(StereoNetwork):
    """A network whose aggregation uses features of the left image, and whose refinement those of both."""

    def extract(self, left: Tensor, right: Tensor) -> FeaturePair:
        both: FastMaps = self.features(torch.cat((left, right)))  # one batch is faster than two
        return FeaturePair(*both.split())

    def cost_volumes(self, features: FeaturePair) -> list[Tensor]:
        volumes: list[Tensor] = self.cost_volume(features.left.descriptors, features.right.descriptors)
        return volumes

    def aggregate(self, volumes: list[Tensor], features: FeaturePair) -> list[Tensor]:
        scores: list[Tensor] = self.aggregation(volumes, features.left)
        return scores

    def refine(
        self,
        disparity: Tensor,
        scores: Tensor,
        features: FeaturePair,
        left: Tensor,
        right: Tensor,  # noqa: ARG002 - only its features are used
    ) -> list[Tensor]:
        refined: list[Tensor] = self.refinement(disparity, scores, features.left, features.right, left)
        return refined
