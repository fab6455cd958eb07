"""The order of refinement: from the cost volume's scale to the image's, one step at a time."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.ops import resize_disparity


class HierarchicalRefinement(nn.Module):
    """Upsample to a scale, refine there, go on to the next; `steps` maps 2 to the refiner at half size."""

    def __init__(self, steps: dict[int, nn.Module]) -> None:
        super().__init__()
        self.scales = list(steps)
        self.steps = nn.ModuleList(steps.values())

    @property
    def size_multiple(self) -> int:
        """What H and W must be a multiple of for every step to have a whole size of its own liking."""
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
    """For networks whose scores already have the size of the image."""

    size_multiple = 1

    def forward(self, _disparity: Tensor, _left: Tensor, _right: Tensor) -> list[Tensor]:
        return []


def _resize_image(image: Tensor, size: tuple[int, int]) -> Tensor:
    if tuple(image.shape[2:]) == size:
        return image
    return F.interpolate(image, size, mode="bilinear", align_corners=False)
