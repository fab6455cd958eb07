"""Convex upsampling from a fraction of the resolution in one step (Teed and Deng, ECCV 2020)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.features.fast import FastMaps
from aanet.models.layers import biased_conv, conv_relu, zeroed
from aanet.models.regression import probability_around
from aanet.ops import warp_by_disparity

RADIUS = 2  # candidates on either side of the disparity whose probabilities are inputs
NEIGHBORS = 9  # coarse pixels of the 3×3 window from which a full-resolution pixel is interpolated
DISPARITY_SCALE = 1 / 16  # scales disparities to the magnitude of the other inputs


class ConvexRefinement(nn.Module):
    """Correct the disparity at 1/`factor` resolution, then upsample it convexly.

    Each full-resolution pixel is a convex combination of nine coarse pixels, which keeps edges sharp. The
    weights are predicted from the left image (the pixels of a cell as channels), its features, the matching
    probabilities around the disparity, and the similarity of left and right descriptors at the disparity.
    """

    def __init__(
        self, factor: int, context_channels: int, detail_channels: int, width: int, blocks: int
    ) -> None:
        super().__init__()
        self.factor = factor
        certainty = 1 + 2 * RADIUS + 1
        inputs = context_channels + 1 + certainty + 3 * factor**2 + detail_channels * (factor // 2) ** 2
        self.enter = conv_relu(inputs, width, kernel=1)
        self.body = nn.ModuleList(conv_relu(width, width) for _ in range(blocks))
        self.residual = zeroed(biased_conv(width, 1))
        self.weights = nn.Conv2d(width, NEIGHBORS * factor**2, 1)  # starts as nearly equal weights

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
                F.pixel_unshuffle(left.details, self.factor // 2),
            ),
            dim=1,
        )
        x = self.enter(x)  # [B, width, h, w]
        for block in self.body:
            x = x + block(x)
        corrected = F.relu(disparity + self.residual(x).squeeze(1).float())
        return [corrected, convex_upsample(corrected, self.weights(x), self.factor)]


def convex_upsample(disparity: Tensor, logits: Tensor, factor: int) -> Tensor:
    """Upsample a disparity map; each new pixel is a convex combination of the 3×3 pixels around it.

    Args:
        disparity: [B, h, w] in pixels of its own grid.
        logits: [B, 9·factor², h, w]; the weights are their softmax over the nine neighbors.
        factor: Factor of width, height and disparity.

    Returns:
        [B, h·factor, w·factor] in pixels of the larger grid.
    """
    batch, height, width = disparity.shape
    weights = torch.softmax(logits.float().view(batch, NEIGHBORS, factor**2, height, width), dim=1)
    padded = F.pad(disparity.unsqueeze(1) * factor, (1, 1, 1, 1), mode="replicate")
    around = F.unfold(padded, 3).view(batch, NEIGHBORS, 1, height, width)
    mixed = (weights * around).sum(dim=1)  # [B, factor², h, w]
    return F.pixel_shuffle(mixed, factor).squeeze(1)
