"""Convolution blocks that several parts of the networks share."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from aanet.ops import deform_conv2d
from aanet.ops.conv import Conv2d

LEAKY_SLOPE = 0.2

# Builds the 3×3 layer of a block from (input channels, output channels, stride).
WindowBuilder = Callable[[int, int, int], nn.Module]


def relu() -> nn.Module:
    """An in-place ReLU; its input is always the output of a batch norm, a convolution or a sum."""
    return nn.ReLU(inplace=True)


def leaky_relu() -> nn.Module:
    """The LeakyReLU of cross-scale aggregation, StereoNet and the refinements."""
    return nn.LeakyReLU(LEAKY_SLOPE, inplace=True)


def conv2d(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, dilation: int = 1) -> Conv2d:
    """A convolution without bias, padded so that only its stride changes the size."""
    return Conv2d(inputs, outputs, kernel, stride, dilation * (kernel // 2), dilation, bias=False)


def conv_norm(
    inputs: int, outputs: int, *activation: nn.Module, kernel: int = 3, stride: int = 1, dilation: int = 1
) -> nn.Sequential:
    """Convolution → batch norm → activation, if one is given."""
    convolution = conv2d(inputs, outputs, kernel, stride, dilation)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), *activation)


def biased_conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    """A convolution for layers without batch norm: with bias, and He initialization for a following ReLU."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution


def conv_relu(inputs: int, outputs: int, kernel: int = 3) -> nn.Sequential:
    """`biased_conv` → ReLU."""
    return nn.Sequential(biased_conv(inputs, outputs, kernel), relu())


def zeroed(convolution: nn.Conv2d) -> nn.Conv2d:
    """Initialize a convolution with zeros, so that adding its output changes nothing before training."""
    nn.init.zeros_(convolution.weight)
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution


def upconv_norm(inputs: int, outputs: int, *activation: nn.Module) -> nn.Sequential:
    """Transposed 4×4 convolution that doubles the size → batch norm → activation, if one is given."""
    convolution = nn.ConvTranspose2d(inputs, outputs, kernel_size=4, stride=2, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), *activation)


def conv3d_norm(inputs: int, outputs: int, *activation: nn.Module, stride: int = 1) -> nn.Sequential:
    """3×3×3 convolution → batch norm → activation, if one is given."""
    convolution = nn.Conv3d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm3d(outputs), *activation)


def upconv3d_norm(inputs: int, outputs: int, *activation: nn.Module) -> nn.Sequential:
    """Transposed 3×3×3 convolution that doubles the size → batch norm → activation, if one is given."""
    convolution = nn.ConvTranspose3d(
        inputs, outputs, kernel_size=3, stride=2, padding=1, output_padding=1, bias=False
    )
    return nn.Sequential(convolution, nn.BatchNorm3d(outputs), *activation)


class DeformConv2d(nn.Module):
    """3×3 modulated deformable convolution, dilation 2, two deformable groups (eq. 4).

    An ordinary convolution of the same stride and dilation predicts the offsets Δp_k and the weights m_k. It
    starts at zero and m_k = 2·sigmoid, so that the layer starts as a plain dilated convolution.
    """

    KERNEL = 3
    DILATION = 2
    GROUPS = 2

    def __init__(self, inputs: int, outputs: int, stride: int = 1, bias: bool = False) -> None:
        super().__init__()
        self.inputs, self.outputs, self.stride = inputs, outputs, stride
        points = self.KERNEL**2
        self.prediction_sizes = [self.GROUPS * 2 * points, self.GROUPS * points]
        self.weight = nn.Parameter(torch.empty(outputs, inputs, self.KERNEL, self.KERNEL))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.offset_predictor = nn.Conv2d(
            inputs,
            sum(self.prediction_sizes),
            self.KERNEL,
            stride,
            self.DILATION,
            self.DILATION,
            groups=self.GROUPS,
        )
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # the default of nn.Conv2d
        nn.init.zeros_(self.offset_predictor.weight)
        assert self.offset_predictor.bias is not None
        nn.init.zeros_(self.offset_predictor.bias)

    def predict_points(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the offsets [B, G·2·9, H, W] and weights [B, G·9, H, W] predicted from the input."""
        offset, logits = self.offset_predictor(x).split(self.prediction_sizes, dim=1)
        return offset, 2 * torch.sigmoid(logits)

    def forward(self, x: Tensor) -> Tensor:
        offset, mask = self.predict_points(x)
        return deform_conv2d(
            x,
            offset,
            mask,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.DILATION,
            dilation=self.DILATION,
        )


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut; `after` is the activation after the sum."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        inner: nn.Module,
        after: nn.Module,
        stride: int = 1,
        dilation: int = 1,
    ) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(inputs, outputs, inner, stride=stride, dilation=dilation),
            conv_norm(outputs, outputs, dilation=dilation),
        )
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else conv_norm(inputs, outputs, kernel=1, stride=stride)
        self.after = after

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.after(self.body(x) + self.shortcut(x))
        return output


def leaky_residual(channels: int, dilation: int = 1) -> ResidualBlock:
    """The residual block of StereoNet and of both residual refinements."""
    return ResidualBlock(channels, channels, leaky_relu(), leaky_relu(), dilation=dilation)


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions and a shortcut (He et al., CVPR 2016); `window` is the 3×3 layer."""

    def __init__(self, inputs: int, width: int, outputs: int, window: nn.Module, stride: int = 1) -> None:
        super().__init__()
        self.reduce = conv_norm(inputs, width, relu(), kernel=1)
        self.window = nn.Sequential(window, nn.BatchNorm2d(width), relu())
        self.expand = conv_norm(width, outputs, kernel=1)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else conv_norm(inputs, outputs, kernel=1, stride=stride)
        self.after = relu()

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.after(self.expand(self.window(self.reduce(x))) + self.shortcut(x))
        return output
