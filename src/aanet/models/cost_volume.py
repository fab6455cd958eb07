"""Features → matching cost: what each network compares left and right features with."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from aanet.models.layers import conv_norm, relu
from aanet.ops import concatenation_volume, correlation_volume, difference_volume


class CorrelationPyramid(nn.Module):
    """A correlation volume [B, D_s, H_s, W_s] per scale (eq. 2); half the candidates at each coarser one."""

    reduction: Literal["mean", "sum"] = "mean"

    def __init__(self, candidates: list[int]) -> None:
        super().__init__()
        self.candidates = candidates

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        scales = zip(left, right, self.candidates, strict=False)  # coarser maps than volumes are left out
        return [correlation_volume(x, y, count, self.reduction) for x, y, count in scales]


class CosinePyramid(CorrelationPyramid):
    """The same for features of unit length, whose product summed over the channels is a cosine."""

    reduction = "sum"


class DifferenceVolume(nn.Module):
    """Left minus right features, [B, C, D, H, W], at the one scale of StereoNet."""

    def __init__(self, candidates: int) -> None:
        super().__init__()
        self.candidates = candidates

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        return [difference_volume(left[0], right[0], self.candidates)]


class ConcatenationVolume(nn.Module):
    """Left and right features on top of each other, [B, 2C, D, H, W], at one scale."""

    def __init__(self, candidates: int) -> None:
        super().__init__()
        self.candidates = candidates

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        return [concatenation_volume(left[0], right[0], self.candidates)]


class ProjectedConcatenationVolume(ConcatenationVolume):
    """GA-Net's volume: left and right features go through a convolution of their own before they meet."""

    def __init__(self, candidates: int, channels: int) -> None:
        super().__init__(candidates)
        self.left = conv_norm(channels, channels, relu())
        self.right = conv_norm(channels, channels, relu())

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        return super().forward([self.left(left[0])], [self.right(right[0])])
