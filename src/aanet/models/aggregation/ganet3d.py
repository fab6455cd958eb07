"""GA-Net's aggregation: guided layers between 3D convolutions (Zhang et al., CVPR 2019).

This is GANet-deep without its four quarter-scale SGA blocks, the network of the paper's table 2.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.hourglass import Merge
from aanet.models.layers import conv3d_norm, relu
from aanet.ops.guided import semi_global_aggregation

CHANNELS = 32
SGA_BLOCKS = 3


class SemiGlobalBlock(nn.Module):
    """SGA followed by a 3D convolution, with a shortcut around both."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.Sequential(nn.BatchNorm3d(channels), relu())
        self.refine = conv3d_norm(channels, channels)

    def forward(self, volume: Tensor, weights: Tensor) -> Tensor:
        aggregated = self.norm(semi_global_aggregation(volume, weights))
        return F.relu(self.refine(aggregated) + volume)


def _up(inputs: int, outputs: int) -> Merge:
    # A kernel of 4 doubles height and width exactly; along the candidates GA-Net uses a kernel of 3.
    double = nn.ConvTranspose3d(
        inputs, outputs, (3, 4, 4), stride=2, padding=1, output_padding=(1, 0, 0), bias=False
    )
    resample = nn.Sequential(double, nn.BatchNorm3d(outputs), relu())
    return Merge(resample, conv3d_norm(2 * outputs, outputs, relu()))


def _down(inputs: int, outputs: int) -> Merge:
    return Merge(conv3d_norm(inputs, outputs, relu(), stride=2), conv3d_norm(2 * outputs, outputs, relu()))


class GANetAggregation(nn.Module):
    """[B, 64, D/3, H/3, W/3] → costs of the same size from the last `outputs` SGA blocks, last one first."""

    size_multiple = 4

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.start = conv3d_norm(2 * CHANNELS, CHANNELS, relu())
        self.down_first = nn.ModuleList(
            [conv3d_norm(32, 48, relu(), stride=2), conv3d_norm(48, 64, relu(), stride=2)]
        )
        self.up_first = nn.ModuleList([_up(64, 48), _up(48, 32)])
        self.down_second = nn.ModuleList([_down(32, 48), _down(48, 64)])
        self.up_second = nn.ModuleList([_up(64, 48), _up(48, 32)])
        self.semi_global = nn.ModuleList(SemiGlobalBlock(CHANNELS) for _ in range(SGA_BLOCKS))
        self.cost = nn.ModuleList(
            nn.Conv3d(CHANNELS, 1, kernel_size=3, padding=1, bias=False) for _ in range(outputs)
        )

    def forward(self, volumes: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
        (volume,) = volumes
        full = self.semi_global[0](self.start(volume), weights[0])
        aggregated = [full]
        half = self.down_first[0](full)
        quarter = self.down_first[1](half)
        half = self.up_first[0](quarter, half)
        full = self.semi_global[1](self.up_first[1](half, full), weights[1])
        aggregated.append(full)
        half = self.down_second[0](full, half)
        quarter = self.down_second[1](half, quarter)
        half = self.up_second[0](quarter, half)
        aggregated.append(self.semi_global[2](self.up_second[1](half, full), weights[2]))
        latest = aggregated[: -self.outputs - 1 : -1]
        return [cost(volume) for cost, volume in zip(self.cost, latest, strict=True)]  # [B, 1, D/3, H/3, W/3]
