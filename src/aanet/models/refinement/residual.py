"""One refinement step: a small network predicts a residual of the disparity from the images."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.hourglass import SIZE_MULTIPLE, StackedHourglass, deformable_window
from aanet.models.layers import conv_norm, leaky_relu, leaky_residual
from aanet.ops import warp_by_disparity
from aanet.ops.conv import Conv2d

DILATIONS = (1, 2, 4, 8, 1, 1)


def _dilated_blocks() -> nn.Sequential:
    return nn.Sequential(*(leaky_residual(32, dilation) for dilation in DILATIONS))


def _residual_conv() -> Conv2d:
    return Conv2d(32, 1, kernel_size=3, padding=1)


class WarpedRefinement(nn.Module):
    """StereoDRNet's refinement (Chabra et al., CVPR 2019).

    The inputs are the left image, the disparity, and the difference between the left image and the warped
    right image; `body` processes their features.
    """

    def __init__(self, body: nn.Module, size_multiple: int = 1) -> None:
        super().__init__()
        self.size_multiple = size_multiple
        self.image_conv = conv_norm(6, 16, leaky_relu())
        self.disparity_conv = conv_norm(1, 16, leaky_relu())
        self.body = body
        self.residual = _residual_conv()

    def forward(self, disparity: Tensor, left: Tensor, right: Tensor) -> Tensor:
        disparity = disparity.unsqueeze(1)  # [B, 1, H, W]
        error = warp_by_disparity(right, disparity.squeeze(1)) - left
        images = self.image_conv(torch.cat((error, left), dim=1))  # [B, 16, H, W]
        x = torch.cat((images, self.disparity_conv(disparity)), dim=1)  # [B, 32, H, W]
        return F.relu(disparity + self.residual(self.body(x))).squeeze(1)


class ColorRefinement(nn.Module):
    """StereoNet's refinement, from the disparity and the left image without warping."""

    def __init__(self) -> None:
        super().__init__()
        self.start = conv_norm(4, 32, leaky_relu())
        self.body = _dilated_blocks()
        self.residual = _residual_conv()

    def forward(self, disparity: Tensor, left: Tensor, _right: Tensor) -> Tensor:
        disparity = disparity.unsqueeze(1)  # [B, 1, H, W]
        x = self.start(torch.cat((disparity, left), dim=1))  # [B, 32, H, W]
        return F.relu(disparity + self.residual(self.body(x))).squeeze(1)


def stereodrnet_refinement() -> WarpedRefinement:
    """The refinement of AANet: six dilated residual blocks."""
    return WarpedRefinement(_dilated_blocks())


def hourglass_refinement() -> WarpedRefinement:
    """The refinement of AANet+: two stacked hourglasses with deformable convolutions."""
    body = nn.Sequential(deformable_window(32, 32), StackedHourglass(deformable_window))
    return WarpedRefinement(body, SIZE_MULTIPLE)
