"""The two stacked hourglasses of GA-Net's features, also used by the refinement of AANet+."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from aanet.models.layers import DeformConv2d, WindowBuilder, conv_norm, relu, upconv_norm

WIDTHS = (32, 48, 64, 96, 128)
SIZE_MULTIPLE = 2 ** (len(WIDTHS) - 1)


def plain_window(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    """3×3 convolution → batch norm → ReLU."""
    return conv_norm(inputs, outputs, relu(), stride=stride)


def deformable_window(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    """A deformable convolution without batch norm and ReLU, as in the published networks."""
    return DeformConv2d(inputs, outputs, stride)


class Merge(nn.Module):
    """Resample `x` by a factor of two, concatenate a skip connection, and fuse both."""

    def __init__(self, resample: nn.Module, fuse: nn.Module) -> None:
        super().__init__()
        self.resample = resample
        self.fuse = fuse

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        output: Tensor = self.fuse(torch.cat((self.resample(x), skip), dim=1))
        return output


def _up(inputs: int, outputs: int) -> Merge:
    return Merge(upconv_norm(inputs, outputs, relu()), plain_window(2 * outputs, outputs))


def _down(inputs: int, outputs: int, window: WindowBuilder) -> Merge:
    return Merge(plain_window(inputs, outputs, 2), window(2 * outputs, outputs, 1))


class StackedHourglass(nn.Module):
    """Two hourglasses down to 1/16; each level of the second has a skip connection from the first.

    `window` builds the layers of the two coarsest levels, which are deformable in GA-Net-AA and AANet+.
    """

    def __init__(self, window: WindowBuilder) -> None:
        super().__init__()
        builders = (plain_window, plain_window, window, window)
        steps = list(zip(WIDTHS[:-1], WIDTHS[1:], builders, strict=True))
        self.down_first = nn.ModuleList(build(wide, narrow, 2) for wide, narrow, build in steps)
        self.up_first = nn.ModuleList(_up(narrow, wide) for wide, narrow, _ in reversed(steps))
        self.down_second = nn.ModuleList(_down(wide, narrow, build) for wide, narrow, build in steps)
        self.up_second = nn.ModuleList(_up(narrow, wide) for wide, narrow, _ in reversed(steps))

    def forward(self, x: Tensor) -> Tensor:
        levels = [x]  # fine to coarse
        for down in self.down_first:
            levels.append(down(levels[-1]))
        levels = self._upsample(self.up_first, levels)
        second = [levels[0]]
        for down, skip in zip(self.down_second, levels[1:], strict=True):
            second.append(down(second[-1], skip))
        return self._upsample(self.up_second, second)[0]

    @staticmethod
    def _upsample(ups: nn.ModuleList, levels: list[Tensor]) -> list[Tensor]:
        """Upsample from the coarsest level with skip connections to all others; returns fine to coarse."""
        outputs = [levels[-1]]
        for up, skip in zip(ups, reversed(levels[:-1]), strict=True):
            outputs.append(up(outputs[-1], skip))
        return outputs[::-1]
