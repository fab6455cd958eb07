"""Warping an image by a disparity map, and resizing disparity maps."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from aanet.errors import InputError
from aanet.ops.inspection import values_can_be_read
from aanet.ops.precision import at_least_float32


def warp_by_disparity(right: Tensor, disparity: Tensor) -> Tensor:
    """Warp the right image into the left view: output(h, w) = right(h, w - disparity(h, w)).

    Sampling is bilinear; outside the image, border pixels are replicated.

    Args:
        right: [B, C, H, W].
        disparity: [B, H, W] in pixels, not negative.

    Returns:
        [B, C, H, W] in the dtype of `right`.
    """
    if right.dim() != 4 or disparity.shape != (right.shape[0], *right.shape[2:]):
        raise InputError(
            "Warping needs an image [B, C, H, W] and a disparity [B, H, W] of the same size, "
            f"but got {list(right.shape)} and {list(disparity.shape)}."
        )
    if not (right.is_floating_point() and disparity.is_floating_point()):
        raise InputError(
            f"Warping needs floating-point tensors, but got {right.dtype} and {disparity.dtype}."
        )
    if values_can_be_read(disparity) and bool((disparity < 0).any()):
        raise InputError(
            f"Disparities must not be negative, but the smallest is {float(disparity.min()):.3g} pixels."
        )
    height, width = right.shape[2:]
    disparity = at_least_float32(disparity.to(torch.promote_types(disparity.dtype, right.dtype)))
    columns = torch.arange(width, dtype=disparity.dtype, device=disparity.device)
    rows = torch.arange(height, dtype=disparity.dtype, device=disparity.device).view(-1, 1)
    sources = columns - disparity
    if values_can_be_read(disparity):
        # The gradient of grid_sample on a CPU writes out of bounds where a coordinate is NaN.
        sources = sources.nan_to_num(nan=0.0)
    # grid_sample's normalized coordinates: -1 and 1 are the outer edges of the border pixels.
    x = (2 * sources + 1) / width - 1
    y = ((2 * rows + 1) / height - 1).expand_as(x)
    grid = torch.stack((x, y), dim=-1)
    warped = F.grid_sample(right.to(grid.dtype), grid, padding_mode="border", align_corners=False)
    return warped.to(right.dtype)


def resize_disparity(disparity: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize a disparity map [B, h, w] bilinearly to [B, H, W] and scale its values by W / w."""
    if disparity.dim() != 3:
        raise InputError(f"A disparity map must be [B, H, W], but has shape {list(disparity.shape)}.")
    if not disparity.is_floating_point():
        raise InputError(f"A disparity map must be a floating-point tensor, but is {disparity.dtype}.")
    if size[0] < 1 or size[1] < 1:
        raise InputError(f"A disparity map cannot be resized to {size[0]}×{size[1]} pixels.")
    if tuple(disparity.shape[1:]) == tuple(size):
        return disparity
    factor = size[1] / disparity.shape[2]
    resized = F.interpolate(disparity.unsqueeze(1), size, mode="bilinear", align_corners=False)
    return resized.squeeze(1) * factor
