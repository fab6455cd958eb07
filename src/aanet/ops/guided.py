"""GA-Net's two guided aggregation layers (Zhang et al., CVPR 2019), in plain PyTorch.

Both take per-pixel weights from a guidance network. The weights have an L1 norm of 1, so that both layers
keep costs in the same range.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from aanet.errors import InputError

SGA_WEIGHTS = 5
SGA_DIRECTIONS = 4
LGA_WINDOW = 5
LGA_WEIGHTS = 3 * LGA_WINDOW**2


def semi_global_aggregation(volume: Tensor, weights: Tensor) -> Tensor:
    """Aggregate costs across the whole image along four directions and keep the maximum (SGA).

    Along a direction r, with C the input and A the result:
    A(p, d) = w0·C(p, d) + w1·A(p-r, d) + w2·A(p-r, d-1) + w3·A(p-r, d+1) + w4·max_i A(p-r, i),
    where a term that does not exist (at the first pixel, at the ends of d) is C(p, d).

    Args:
        volume: [B, C, D, H, W].
        weights: [B, 4, C, 5, H, W] for the directions down, up, right, left.

    Returns:
        [B, C, D, H, W].
    """
    batch, channels, _, height, width = volume.shape
    expected = [batch, SGA_DIRECTIONS, channels, SGA_WEIGHTS, height, width]
    if list(weights.shape) != expected:
        raise InputError(f"SGA weights must have shape {expected}, but have {list(weights.shape)}.")
    if volume.is_meta:  # the scan would run hundreds of steps to compute only a shape
        return torch.empty_like(volume)
    down, up, right, left = weights.unbind(dim=1)
    vertical = _scan_both_directions(volume, down, up, dim=-2)
    horizontal = _scan_both_directions(volume, right, left, dim=-1)
    return torch.maximum(vertical, horizontal)


def _scan_both_directions(volume: Tensor, forward: Tensor, backward: Tensor, dim: int) -> Tensor:
    """Scan along `dim` in both directions in one batch, the backward direction on a flipped volume."""
    volumes = torch.cat((volume, volume.flip(dim)))
    result, flipped = _scan(volumes, torch.cat((forward, backward.flip(dim))), dim).chunk(2)
    return torch.maximum(result, flipped.flip(dim))


def _scan(volume: Tensor, weights: Tensor, dim: int) -> Tensor:
    # Per step: costs [N, C, D, M] and weights [N, C, 5, M] of the M pixels of one row or column.
    results: list[Tensor] = []
    for cost, weight in zip(volume.unbind(dim), weights.unbind(dim), strict=True):
        w0, w1, w2, w3, w4 = weight.split(1, dim=2)
        if not results:
            results.append(cost * weight.sum(dim=2, keepdim=True))
            continue
        previous = results[-1]
        lower = torch.cat((cost[:, :, :1], previous[:, :, :-1]), dim=2)
        upper = torch.cat((previous[:, :, 1:], cost[:, :, -1:]), dim=2)
        best = previous.amax(dim=2, keepdim=True)
        results.append(w0 * cost + w1 * previous + w2 * lower + w3 * upper + w4 * best)
    return torch.stack(results, dim=dim)


def local_guided_aggregation(volume: Tensor, weights: Tensor) -> Tensor:
    """Filter every pixel with its own 5×5 weights over the candidates d-1, d and d+1 (LGA).

    Args:
        volume: [B, D, H, W]; border values are replicated outside.
        weights: [B, 75, H, W]: for the candidates d-1, d, d+1 in turn, the window in row order.

    Returns:
        [B, D, H, W].
    """
    batch, candidates, height, width = volume.shape
    expected = [batch, LGA_WEIGHTS, height, width]
    if list(weights.shape) != expected:
        raise InputError(f"LGA weights must have shape {expected}, but have {list(weights.shape)}.")
    if volume.is_meta:
        return torch.empty_like(volume)
    radius = LGA_WINDOW // 2
    padded = F.pad(volume.unsqueeze(1), (radius,) * 4 + (1, 1), mode="replicate").squeeze(1)
    result = torch.zeros_like(volume)
    for index, weight in enumerate(weights.split(1, dim=1)):
        step, position = divmod(index, LGA_WINDOW**2)
        row, column = divmod(position, LGA_WINDOW)
        neighbor = padded[:, step : step + candidates, row : row + height, column : column + width]
        result = torch.addcmul(result, weight, neighbor)
    return result
