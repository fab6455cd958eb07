"""A stereo network: five parts and a forward pass that follows the paper's figure 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from aanet.errors import InputError
from aanet.inference.size_rule import SizeRule
from aanet.models.features import FeatureExtractor
from aanet.ops.inspection import values_can_be_read

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def normalize(images: Tensor) -> Tensor:
    """Normalize RGB images [B, 3, H, W] in 0 … 1 by ImageNet's mean and standard deviation."""
    if not images.is_floating_point() or images.dim() < 3 or images.shape[-3] != 3:
        raise InputError(
            "Images to normalize must be floating-point [B, 3, H, W] with values in 0 … 1, "
            f"but are {images.dtype} {list(images.shape)}."
        )
    mean = torch.tensor(IMAGENET_MEAN, dtype=images.dtype, device=images.device).view(3, 1, 1)
    std = torch.tensor(IMAGENET_STD, dtype=images.dtype, device=images.device).view(3, 1, 1)
    return (images - mean) / std


@dataclass
class StereoOutput:
    """The output of a network.

    Attributes:
        disparities: Maps [B, h, w], coarse to fine, each in pixels of its own grid.
        scores: [B, D, h, w] of the finest scale, before the softmax; a high score is a good match.
        matched: [B, h, w], the disparity regressed from `scores`, before refinement.
    """

    disparities: list[Tensor]
    scores: Tensor
    matched: Tensor

    @property
    def disparity(self) -> Tensor:
        """The last and finest map [B, H, W]."""
        return self.disparities[-1]


class FeaturePair(NamedTuple):
    """Features of both images, as the extractor returns them: usually lists of maps, fine to coarse."""

    left: Any
    right: Any


@dataclass(frozen=True)
class Architecture:
    """The arguments that a network was built with; stored in checkpoints to rebuild it."""

    builder: str
    max_disparity: int
    training_heads: bool
    regression: str = "soft_argmin"  # one of `REGRESSIONS`; absent in older files


class StereoNetwork(nn.Module):
    """images → features → matching cost → aggregation → disparity → refinement.

    Inputs are left and right images [B, 3, H, W], normalized (see `normalize`), of a size that
    `sizes` allows.
    """

    def __init__(
        self,
        architecture: Architecture,
        features: FeatureExtractor,
        cost_volume: nn.Module,
        aggregation: nn.Module,
        regression: nn.Module,
        refinement: nn.Module,
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.features = features
        self.cost_volume = cost_volume
        self.aggregation = aggregation
        self.regression = regression
        self.refinement = refinement
        multiple = math.lcm(
            features.sizes.multiple,
            features.scales[0] * getattr(aggregation, "size_multiple", 1),
            getattr(refinement, "size_multiple", 1),
        )
        self.sizes = SizeRule(multiple, -(-features.sizes.minimum // multiple) * multiple)

    @property
    def max_disparity(self) -> int:
        """The search range: disparities are below this many pixels of the image."""
        return self.architecture.max_disparity

    def extract(self, left: Tensor, right: Tensor) -> FeaturePair:
        """Return the features of both images."""
        return FeaturePair(self.features(left), self.features(right))

    def cost_volumes(self, features: FeaturePair) -> list[Tensor]:
        """Return the raw matching cost, fine to coarse."""
        volumes: list[Tensor] = self.cost_volume(features.left, features.right)
        return volumes

    def aggregate(self, volumes: list[Tensor], features: FeaturePair) -> list[Tensor]:  # noqa: ARG002 - for subclasses
        """Return the scores of the candidates, fine to coarse; some networks also use the features."""
        scores: list[Tensor] = self.aggregation(volumes)
        return scores

    def regress(self, scores: list[Tensor], features: FeaturePair) -> list[Tensor]:  # noqa: ARG002 - for subclasses
        """Return the disparity of every scale that has scores, coarse to fine."""
        return [self.regression(volume) for volume in reversed(scores)]

    def refine(
        self,
        disparity: Tensor,
        scores: Tensor,  # noqa: ARG002 - for subclasses
        features: FeaturePair,  # noqa: ARG002 - for subclasses
        left: Tensor,
        right: Tensor,
    ) -> list[Tensor]:
        """Return the refined disparities, coarse to fine."""
        refined: list[Tensor] = self.refinement(disparity, left, right)
        return refined

    def forward(self, left: Tensor, right: Tensor) -> StereoOutput:
        self.check_inputs(left, right)
        features = self.extract(left, right)
        scores = self.aggregate(self.cost_volumes(features), features)
        disparities = self.regress(scores, features)
        refined = self.refine(disparities[-1], scores[0], features, left, right)
        return StereoOutput([*disparities, *refined], scores[0], disparities[-1])

    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def check_inputs(self, left: Tensor, right: Tensor) -> None:
        """Raise an error unless the inputs are two finite images of the same, allowed size."""
        if left.shape != right.shape:
            raise InputError(
                "The left and right images must have the same shape, "
                f"but are {list(left.shape)} and {list(right.shape)}."
            )
        if left.dim() != 4 or left.shape[1] != 3:
            raise InputError(f"Images must be [B, 3, H, W], but have shape {list(left.shape)}.")
        for side, image in (("left", left), ("right", right)):
            if not image.is_floating_point():
                raise InputError(
                    f"The {side} image must be a normalized floating-point tensor, but is {image.dtype}."
                )
            if image.dtype != self._dtype() and not torch.is_autocast_enabled(image.device.type):
                raise InputError(
                    f"The {side} image must be {self._dtype()} like the network, but is {image.dtype}."
                )
            if values_can_be_read(image) and not bool(torch.isfinite(image).all()):
                raise InputError(f"The {side} image contains values that are not finite numbers.")
        self.sizes.check(left.shape[2], left.shape[3], self.architecture.builder)
