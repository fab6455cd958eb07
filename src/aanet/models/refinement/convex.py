"""Convex upsampling from a fraction of the resolution in one step (Teed and Deng, ECCV 2020)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.features.fast import FastMaps
from aanet.models.layers import biased_conv, conv_norm, relu, zeroed
from aanet.models.regression import probability_around
from aanet.ops import warp_by_disparity
from aanet.ops.precision import without_autocast

RADIUS = 2  # candidates on either side of the disparity whose probabilities are inputs
NEIGHBORS = 9  # coarse pixels of the 3×3 window from which a full-resolution pixel is interpolated
SMALLEST = -60.0  # smallest logarithm of a weight beside the largest one
DISPARITY_SCALE = 1 / 16  # scales disparities to the magnitude of the other inputs


class ConvexRefinement(nn.Module):
    """Correct the disparity at 1/`factor` resolution, then upsample it convexly.

    Each full-resolution pixel is a convex combination of nine coarse pixels, which keeps edges sharp. The
    correction is predicted from features, the matching probabilities around the disparity, and the similarity
    of left and right descriptors at the disparity. The weights are predicted at half resolution, from the
    left image and its features at half resolution, which locate edges.
    """

    def __init__(
        self,
        factor: int,
        context_channels: int,
        detail_channels: int,
        width: int,
        detail_width: int,
        blocks: int,
    ) -> None:
        super().__init__()
        self.factor = factor
        certainty = 1 + 2 * RADIUS + 1
        self.enter = conv_norm(context_channels + 1 + certainty + 3 * factor**2, width, relu(), kernel=1)
        self.body = nn.ModuleList(conv_norm(width, width, relu()) for _ in range(blocks))
        self.residual = zeroed(biased_conv(width, 1))
        self.to_half = conv_norm(width, (factor // 2) ** 2 * detail_width, kernel=1)
        self.details = conv_norm(detail_channels + 3 * 2**2, detail_width)
        self.edges = conv_norm(detail_width, detail_width, relu())
        self.weights = nn.Conv2d(detail_width, NEIGHBORS * 2**2, 1)  # starts as nearly equal weights

    def forward(
        self, disparity: Tensor, scores: Tensor, left: FastMaps, right: FastMaps, image: Tensor
    ) -> list[Tensor]:
        """Return the corrected disparity [B, h, w] and the upsampled one [B, H, W].

        Inputs derived from disparity and scores are detached: the scores are trained by a loss of their own.
        """
        known = disparity.detach()
        warped = warp_by_disparity(right.descriptors[0], known.clamp(min=0))
        x = torch.cat(
            (
                left.context[0],
                known.unsqueeze(1) * DISPARITY_SCALE,
                probability_around(scores.detach(), known, RADIUS),
                (warped * left.descriptors[0]).sum(dim=1, keepdim=True),
                F.pixel_unshuffle(image, self.factor),
            ),
            dim=1,
        )
        x = self.enter(x)  # [B, width, h, w]
        for block in self.body:
            x = x + block(x)
        corrected = F.relu(disparity + self.residual(x).squeeze(1).float())
        details = self.details(torch.cat((left.details, F.pixel_unshuffle(image, 2)), dim=1))
        y = F.relu(
            F.pixel_shuffle(self.to_half(x), self.factor // 2) + details
        )  # [B, detail_width, H/2, W/2]
        y = y + self.edges(y)
        return [corrected, convex_upsample(corrected, self.weights(y), self.factor)]


def convex_upsample(disparity: Tensor, logits: Tensor, factor: int) -> Tensor:
    """Upsample a disparity map; each new pixel is a convex combination of the 3×3 pixels around it.

    Args:
        disparity: [B, h, w] in pixels of its own grid.
        logits: [B, 9·n², h·factor/n, w·factor/n], each for n×n pixels of the larger map; the weights are
            their softmax over the nine neighbors.
        factor: Factor of width, height and disparity.

    Returns:
        [B, h·factor, w·factor] in pixels of the larger grid.
    """
    batch, channels, rows, columns = logits.shape
    pixels = channels // NEIGHBORS  # n²
    logits = logits.float()
    largest = logits.detach().amax(dim=1, keepdim=True)
    powers = (logits - largest).clamp(min=SMALLEST).exp()  # [B, 9·n², h·factor/n, w·factor/n]
    coarse = disparity.unsqueeze(1) * factor
    around = F.unfold(F.pad(coarse, (1, 1, 1, 1), mode="replicate"), 3)
    # Relative to the center, so that bf16 does not round whole disparities.
    around = around.view(batch, NEIGHBORS, *disparity.shape[1:]) - coarse
    around = F.interpolate(around.repeat_interleave(pixels, dim=1), (rows, columns), mode="nearest")
    # Sums over the neighbors as 1×1 convolutions keep channels last. For a softmax over another shape,
    # OpenVINO moves all weights in memory, which takes a fourteenth of a prediction.
    over_neighbors = torch.eye(pixels, device=logits.device).repeat(1, NEIGHBORS)[:, :, None, None]
    with without_autocast(logits):
        mixed = F.conv2d(powers * around, over_neighbors) / F.conv2d(powers, over_neighbors)  # [B, n², …]
    larger = F.pixel_shuffle(mixed, math.isqrt(pixels))  # [B, 1, h·factor, w·factor]
    return (larger + F.interpolate(coarse, larger.shape[2:], mode="nearest")).squeeze(1)
