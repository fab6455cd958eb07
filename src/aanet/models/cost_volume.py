"""Features → matching cost: the cost volumes of the networks."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from aanet.models.layers import conv_norm, relu
from aanet.ops import concatenation_volume, correlation_volume, difference_volume


class CorrelationPyramid(nn.Module):
    """Correlation volumes [B, D_s, H_s, W_s] (eq. 2); each coarser scale has half the candidates."""

    reduction: Literal["mean", "sum"] = "mean"

    def __init__(self, candidates: list[int]) -> None:
        super().__init__()
        self.candidates = candidates

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        scales = zip(left, right, self.candidates, strict=False)  # there may be more maps than volumes
        return [correlation_volume(x, y, count, self.reduction) for x, y, count in scales]


class CosinePyramid(CorrelationPyramid):
    """A correlation pyramid for features of unit length, whose product summed over channels is a cosine."""

    reduction = "sum"


class DifferenceVolume(nn.Module):
    """Left minus right features, [B, C, D, H, W], at a single scale (StereoNet)."""

    def __init__(self, candidates: int) -> None:
        super().__init__()
        self.candidates = candidates

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        return [difference_volume(left[0], right[0], self.candidates)]


class ConcatenationVolume(nn.Module):
    """Left and right features concatenated along channels, [B, 2C, D, H, W], at a single scale."""

    def __init__(self, candidates: int) -> None:
        super().__init__()
        self.candidates = candidates

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        return [concatenation_volume(left[0], right[0], self.candidates)]


class ProjectedConcatenationVolume(ConcatenationVolume):
    """GA-Net's volume: left and right features pass separate convolutions before concatenation."""

    def __init__(self, candidates: int, channels: int) -> None:
        super().__init__(candidates)
        self.left = conv_norm(channels, channels, relu())
        self.right = conv_norm(channels, channels, relu())

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        return super().forward([self.left(left[0])], [self.right(right[0])])
