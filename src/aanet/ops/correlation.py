"""Matching costs of two feature maps: correlation (eq. 2), difference and concatenation volumes.

All of them compare `left(h, w)` with `right(h, w - d)` for d = 0 … D-1. Where w - d lies outside the right
image, the volume is 0, as in the published networks.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from aanet.errors import InputError
from aanet.ops.precision import at_least_float32, without_autocast


def correlation_volume(
    left: Tensor, right: Tensor, candidates: int, reduction: Literal["mean", "sum"] = "mean"
) -> Tensor:
    """Mean over channels of the product of the features (eq. 2), or the sum, a cosine for unit vectors.

    One matrix product per image row multiplies every left pixel with every right pixel; the products of eq. 2
    lie on D diagonals of the result. With the right row reversed and padded with D zeros, dropping the first
    W-1 numbers and reshaping to rows that are one shorter moves those diagonals into the first D columns.

    Args:
        left: [B, C, H, W].
        right: [B, C, H, W].
        candidates: D.
        reduction: How products are reduced over the channels.

    Returns:
        [B, D, H, W], channels-last, in float32 or float64, because half precision degrades matching.
    """
    _check_features(left, right, candidates)
    width = left.shape[3]
    with without_autocast(left):
        left_rows = at_least_float32(left).permute(0, 2, 3, 1)  # [B, H, W, C]
        left_rows = left_rows / left.shape[1] if reduction == "mean" else left_rows
        right_rows = at_least_float32(right).permute(0, 2, 3, 1).flip(2)
        right_rows = F.pad(right_rows, (0, 0, 0, candidates))  # [B, H, W + D, C]
        products = torch.matmul(left_rows, right_rows.transpose(2, 3))  # [B, H, W, W + D]
    shorter = width + candidates - 1
    diagonals = products.flatten(2)[:, :, width - 1 : width - 1 + width * shorter]
    volume: Tensor = diagonals.unflatten(2, (width, shorter))[..., :candidates]  # [B, H, W, D]
    return volume.permute(0, 3, 1, 2)


def difference_volume(left: Tensor, right: Tensor, candidates: int) -> Tensor:
    """Left minus right features (StereoNet); returns [B, C, D, H, W]."""
    _check_features(left, right, candidates)
    shifted, inside = _shifted(right, candidates)
    return (left.unsqueeze(2) - shifted) * inside


def concatenation_volume(left: Tensor, right: Tensor, candidates: int) -> Tensor:
    """Left and right features concatenated along channels (GC-Net); returns [B, 2C, D, H, W]."""
    _check_features(left, right, candidates)
    shifted, inside = _shifted(right, candidates)
    return torch.cat((left.unsqueeze(2).expand_as(shifted) * inside, shifted * inside), dim=1)


def _shifted(right: Tensor, candidates: int) -> tuple[Tensor, Tensor]:
    """Return right(h, w - d) as [B, C, D, H, W], and [D, 1, W] with 1 where w - d lies inside the image."""
    columns = torch.arange(right.shape[3], device=right.device)
    source = columns - torch.arange(candidates, device=right.device).unsqueeze(1)  # [D, W]
    shifted = right.index_select(3, source.clamp(min=0).flatten())
    shifted = shifted.unflatten(3, (candidates, -1)).transpose(2, 3)
    return shifted, (source >= 0).to(right.dtype).unsqueeze(1)


def _check_features(left: Tensor, right: Tensor, candidates: int) -> None:
    if left.dim() != 4 or left.shape != right.shape:
        raise InputError(
            "Left and right features must both be [B, C, H, W] of the same shape, "
            f"but are {list(left.shape)} and {list(right.shape)}."
        )
    if not (left.is_floating_point() and right.is_floating_point()):
        raise InputError(f"Features must be floating-point tensors, but are {left.dtype} and {right.dtype}.")
    if candidates < 1:
        raise InputError(f"A cost volume needs at least 1 disparity candidate, but got {candidates}.")
