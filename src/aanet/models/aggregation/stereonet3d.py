"""StereoNet's aggregation: four 3D convolutions on a small volume (Khamis et al., ECCV 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from aanet.models.layers import conv3d_norm, leaky_relu


class StereoNetAggregation(nn.Module):
    """[B, 32, D, H, W] → scores [B, D, H, W]."""

    size_multiple = 1

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*(conv3d_norm(32, 32, leaky_relu()) for _ in range(4)))
        self.cost = nn.Conv3d(32, 1, kernel_size=3, padding=1, bias=False)

    def forward(self, volumes: list[Tensor]) -> list[Tensor]:
        (volume,) = volumes
        return [-self.cost(self.body(volume)).squeeze(1)]  # a low cost is a high score
