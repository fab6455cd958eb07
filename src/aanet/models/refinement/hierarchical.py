"""Refinement in steps from the resolution of the cost volume to that of the image."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.ops import resize_disparity


class HierarchicalRefinement(nn.Module):
    """Upsample and refine at each scale in turn; `steps` maps a scale (2 for half size) to its refinement."""

    def __init__(self, steps: dict[int, nn.Module]) -> None:
        super().__init__()
        self.scales = list(steps)
        self.steps = nn.ModuleList(steps.values())

    @property
    def size_multiple(self) -> int:
        """The multiple that H and W must be so that every step has a size that it accepts."""
        return max(
            scale * getattr(step, "size_multiple", 1)
            for scale, step in zip(self.scales, self.steps, strict=True)
        )

    def forward(self, disparity: Tensor, left: Tensor, right: Tensor) -> list[Tensor]:
        """Return one disparity map per step, coarse to fine."""
        refined = []
        for scale, step in zip(self.scales, self.steps, strict=True):
            size = (left.shape[2] // scale, left.shape[3] // scale)
            small_left, small_right = _resize_image(left, size), _resize_image(right, size)
            disparity = step(resize_disparity(disparity, size), small_left, small_right)
            refined.append(disparity)  # [B, H/scale, W/scale]
        return refined


class NoRefinement(nn.Module):
    """The refinement of networks whose scores already have the size of the image."""

    size_multiple = 1

    def forward(self, _disparity: Tensor, _left: Tensor, _right: Tensor) -> list[Tensor]:
        return []


def _resize_image(image: Tensor, size: tuple[int, int]) -> Tensor:
    if tuple(image.shape[2:]) == size:
        return image
    return F.interpolate(image, size, mode="bilinear", align_corners=False)
