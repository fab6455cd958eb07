"""From a quarter of the image to all of it in one step: convex upsampling (Teed and Deng, ECCV 2020)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.features.fast import FastMaps
from aanet.models.layers import biased_conv, conv_norm, relu, zeroed
from aanet.models.regression import probability_around
from aanet.ops import warp_by_disparity

REACH = 2  # candidates on either side of the peak whose probabilities are shown to the refinement
NEIGHBORS = 9  # coarse pixels of the 3×3 window that a full-size pixel is mixed from
DISPARITY_SCALE = 1 / 16  # brings quarter-size disparities to the magnitude of the other inputs


class ConvexRefinement(nn.Module):
    """Correct the disparity at 1/`factor` of the image, then mix each full-size pixel from nine of it.

    Mixing with weights that sum to one cannot invent a surface between two: edges stay sharp.
    The correction is predicted from features, from how certain the match is and from how well left and right
    descriptors agree at the disparity.  The weights are predicted at half the size of the image, where
    features of the left image at half size show its edges.
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
        certainty = 1 + 2 * REACH + 1
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
        """Return the corrected disparity [B, h, w], and [B, H, W]; the scores have their own loss."""
        known = disparity.detach()
        warped = warp_by_disparity(right.descriptors[0], known.clamp(min=0))
        x = torch.cat(
            (
                left.context[0],
                known.unsqueeze(1) * DISPARITY_SCALE,
                probability_around(scores.detach(), known, REACH),
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
        y = F.relu(F.pixel_shuffle(self.to_half(x), self.factor // 2) + details)  # [B, detail_width, H/2, W/2]
        y = y + self.edges(y)
        return [corrected, convex_upsample(corrected, self.weights(y), self.factor)]


def convex_upsample(disparity: Tensor, logits: Tensor, factor: int) -> Tensor:
    """Mix each pixel of a map `factor` times as large from the 3×3 pixels around it.

    Args:
        disparity: [B, h, w] in pixels of its own grid.
        logits: [B, 9·n², h·factor/n, w·factor/n] for n×n pixels of the larger map each; their softmax over
            the nine neighbors are the weights.
        factor: Of width, height and disparity.

    Returns:
        [B, h·factor, w·factor] in pixels of the larger grid.
    """
    batch, channels, rows, columns = logits.shape
    pixels = channels // NEIGHBORS  # n²
    weights = torch.softmax(logits.float().view(batch, NEIGHBORS, pixels, rows, columns), dim=1)
    padded = F.pad(disparity.unsqueeze(1) * factor, (1, 1, 1, 1), mode="replicate")
    around = F.unfold(padded, 3).view(batch, NEIGHBORS, *disparity.shape[1:])
    around = F.interpolate(around, (rows, columns), mode="nearest")  # [B, 9, h·factor/n, w·factor/n]
    mixed = (weights * around.unsqueeze(2)).sum(dim=1)  # [B, n², h·factor/n, w·factor/n]
    return F.pixel_shuffle(mixed, math.isqrt(pixels)).squeeze(1)
