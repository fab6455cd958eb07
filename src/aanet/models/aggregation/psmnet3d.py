"""PSMNet's aggregation: three stacked 3D hourglasses (Chang and Chen, CVPR 2018)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.layers import conv3d_norm, relu, upconv3d_norm


class Hourglass3d(nn.Module):
    """A 3D hourglass down to a quarter of the volume, with skip connections from earlier hourglasses."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        double = 2 * channels
        self.to_half = nn.Sequential(
            conv3d_norm(channels, double, relu(), stride=2), conv3d_norm(double, double)
        )
        self.to_quarter = nn.Sequential(
            conv3d_norm(double, double, relu(), stride=2), conv3d_norm(double, double, relu())
        )
        self.up_to_half = upconv3d_norm(double, double)
        self.up_to_full = upconv3d_norm(double, channels)

    def forward(
        self, x: Tensor, first_down: Tensor | None = None, previous_up: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the output and the half-size features of the encoder and of the decoder.

        Args:
            x: The volume.
            first_down: Half-size encoder features of the first hourglass.
            previous_up: Half-size decoder features of the previous hourglass.
        """
        down = self.to_half(x)
        down = F.relu(down if previous_up is None else down + previous_up)
        up = F.relu(self.up_to_half(self.to_quarter(down)) + (down if first_down is None else first_down))
        return self.up_to_full(up), down, up


class PSMNetAggregation(nn.Module):
    """[B, 64, D/4, H/4, W/4] → scores [B, D, H, W] of the last `outputs` hourglasses, last one first."""

    SCALE = 4
    size_multiple = 4

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.start = nn.Sequential(conv3d_norm(64, 32, relu()), conv3d_norm(32, 32, relu()))
        self.residual = nn.Sequential(conv3d_norm(32, 32, relu()), conv3d_norm(32, 32))
        self.hourglasses = nn.ModuleList(Hourglass3d(32) for _ in range(3))
        self.score = nn.ModuleList(
            nn.Sequential(conv3d_norm(32, 32, relu()), nn.Conv3d(32, 1, 3, padding=1, bias=False))
            for _ in range(3)
        )

    def forward(self, volumes: list[Tensor]) -> list[Tensor]:
        (volume,) = volumes
        x = self.start(volume)
        x = x + self.residual(x)
        first, second, third = self.hourglasses
        y, first_down, up = first(x)
        outputs = [y + x]
        y, _, up = second(outputs[-1], first_down, up)
        outputs.append(y + x)
        y, _, _ = third(outputs[-1], first_down, up)
        outputs.append(y + x)

        scores = [self.score[0](outputs[0])]
        for score, output in zip(list(self.score)[1:], outputs[1:], strict=True):
            scores.append(scores[-1] + score(output))
        return [self._upsample(score) for score in scores[: -self.outputs - 1 : -1]]

    def _upsample(self, score: Tensor) -> Tensor:
        size = [self.SCALE * length for length in score.shape[2:]]
        return F.interpolate(score, size, mode="trilinear", align_corners=False).squeeze(1)
