"""Ordinary convolution with a weight gradient that is fast in channels-last order on every CPU.

Without AVX-512, oneDNN's weight gradient of a channels-last 3×3 convolution takes five times as long as the
forward pass and accounts for half of a training step. Computed as matrix products, it takes half the time.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from aanet.ops.inspection import is_recording


class Conv2d(nn.Conv2d):
    """`nn.Conv2d` that uses `weight_gradient` in its backward pass where that is faster."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self._keeps_size() and _gains_from_products(x, weight):
            output: Tensor = _same_conv(x, weight, self.dilation[0])
            return output if bias is None else output + bias.view(-1, 1, 1)
        plain: Tensor = super()._conv_forward(x, weight, bias)
        return plain

    def _keeps_size(self) -> bool:
        """Whether `weight_gradient` applies: stride 1, one group, output as large as the input."""
        kernel, dilation = self.kernel_size[0], self.dilation[0]
        return (
            kernel > 1
            and self.kernel_size == (kernel, kernel)
            and self.stride == (1, 1)
            and self.dilation == (dilation, dilation)
            and self.padding == (dilation * (kernel // 2),) * 2
            and self.groups == 1
        )


def _gains_from_products(x: Tensor, weight: Tensor) -> bool:
    return (
        torch.is_grad_enabled()
        and weight.requires_grad
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.is_contiguous(memory_format=torch.channels_last)
        and not is_recording()
        and not torch.is_autocast_enabled("cpu")
        and torch.backends.cpu.get_cpu_capability() != "AVX512"
    )


class _SameConv(torch.autograd.Function):
    """A stride-1 convolution that keeps the size."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, dilation: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.dilation = dilation
        return F.conv2d(x, weight, padding=dilation * (weight.shape[2] // 2), dilation=dilation)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        dilation: int = ctx.dilation
        grad = grad.contiguous(memory_format=torch.channels_last)
        to_input = None
        if ctx.needs_input_grad[0]:
            padding = dilation * (weight.shape[2] // 2)
            to_input, _, _ = torch.ops.aten.convolution_backward(
                grad,
                x,
                weight,
                None,
                [1, 1],
                [padding] * 2,
                [dilation] * 2,
                False,
                [0, 0],
                1,
                [True, False, False],
            )
        return to_input, weight_gradient(x, grad, weight.shape[2], dilation), None


_same_conv: Any = _SameConv.apply


def weight_gradient(x: Tensor, grad: Tensor, kernel: int, dilation: int) -> Tensor:
    """Return the gradient [Cout, Cin, k, k] of the weight, one matrix product per kernel position.

    Image and gradient are zero-padded to rows of equal length. The image shifted to a kernel position is then
    a slice of the flattened image; pixels that wrap around the end of a row are multiplied by the padding of
    the gradient.

    Args:
        x: Input [B, Cin, H, W], channels-last.
        grad: Gradient of the output [B, Cout, H, W], channels-last.
        kernel: k.
        dilation: Distance between kernel positions.
    """
    reach = dilation * (kernel // 2)
    image = F.pad(x.permute(0, 2, 3, 1), (0, 0, reach, reach, reach, reach))  # [B, H + 2r, W + 2r, Cin]
    padded_grad = F.pad(grad.permute(0, 2, 3, 1), (0, 0, 0, 2 * reach, 0, 2 * reach))
    width = image.shape[2]
    pixels, padded_grad = image.flatten(0, 2), padded_grad.flatten(0, 2)  # [B·(H + 2r)·(W + 2r), C]
    products = [
        torch.mm(padded_grad[: len(padded_grad) - start].t(), pixels[start:])
        for row in range(kernel)
        for start in (dilation * (row * width + column) for column in range(kernel))
    ]
    gradient: Tensor = torch.stack(products, dim=-1).unflatten(2, (kernel, kernel))
    return gradient
