"""Modulated deformable convolution (eq. 4 of the paper; Zhu et al., CVPR 2019), in plain PyTorch.

Three implementations take the same arguments and compute the same result:

* `deform_conv2d_bags` gathers the four neighbors of each sampling point with `embedding_bag`. It is the
  fastest on a CPU and the most accurate, because coordinates are never normalized.
* `deform_conv2d_grid` uses `grid_sample`. It runs on any device and exports to every exchange format.
* torchvision's operator is used on CUDA where torchvision is installed.

`deform_conv2d` selects one by device; `using_deform_conv` overrides the choice, as the exporters do.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from aanet.errors import InputError
from aanet.ops.bags import weighted_bags
from aanet.ops.inspection import is_recording
from aanet.ops.precision import at_least_float32


class Geometry(NamedTuple):
    """Group counts and output size, derived from the arguments of a deformable convolution."""

    deform_groups: int  # G
    groups: int
    points: int  # K, kernel positions
    height: int  # Ho
    width: int  # Wo


@dataclass(frozen=True)
class DeformConvArguments:
    """The arguments of `deform_conv2d`, which every implementation takes."""

    x: Tensor
    offset: Tensor
    mask: Tensor
    weight: Tensor
    bias: Tensor | None = None
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def geometry(self) -> Geometry:
        """Check that the arguments are consistent and return the sizes derived from them."""
        x, offset, mask, weight = self.x, self.offset, self.mask, self.weight
        stride, padding, dilation = self.stride, self.padding, self.dilation
        for name, tensor in (("input", x), ("offset", offset), ("mask", mask), ("weight", weight)):
            if tensor.dim() != 4:
                raise InputError(f"The {name} must have 4 dimensions, but has shape {list(tensor.shape)}.")
            if not tensor.is_floating_point():
                raise InputError(f"The {name} must be a floating-point tensor, but is {tensor.dtype}.")
        if stride < 1 or padding < 0 or dilation < 1:
            raise InputError(
                "Stride and dilation must be at least 1 and padding at least 0, "
                f"but are {stride}, {dilation} and {padding}."
            )
        batch, channels, rows, columns = x.shape
        kernel_height, kernel_width = weight.shape[2:]
        points = kernel_height * kernel_width
        height = (rows + 2 * padding - dilation * (kernel_height - 1) - 1) // stride + 1
        width = (columns + 2 * padding - dilation * (kernel_width - 1) - 1) // stride + 1
        deform_groups = mask.shape[1] // points
        if channels % weight.shape[1] or weight.shape[0] % max(channels // weight.shape[1], 1):
            raise InputError(
                f"A weight of shape {list(weight.shape)} does not fit an input of {channels} channels for "
                "any number of groups."
            )
        if deform_groups == 0 or channels % deform_groups:
            raise InputError(
                f"{channels} input channels cannot be split into {deform_groups} deformable groups."
            )
        if not is_recording():
            if height < 1 or width < 1:
                raise InputError(
                    f"A {kernel_height}×{kernel_width} kernel of dilation {dilation} does not fit into "
                    f"{rows}×{columns} pixels with padding {padding}."
                )
            expected = [batch, deform_groups * points, height, width]
            if list(mask.shape) != expected:
                raise InputError(f"The mask must have shape {expected}, but has {list(mask.shape)}.")
            expected[1] *= 2
            if list(offset.shape) != expected:
                raise InputError(f"The offset must have shape {expected}, but has {list(offset.shape)}.")
        return Geometry(deform_groups, channels // weight.shape[1], points, height, width)


DeformConv = Callable[[DeformConvArguments], Tensor]

_forced: ContextVar[DeformConv | None] = ContextVar("forced deformable convolution", default=None)


@contextlib.contextmanager
def using_deform_conv(implementation: DeformConv) -> Iterator[None]:
    """Compute every deformable convolution inside the block with `implementation`."""
    token = _forced.set(implementation)
    try:
        yield
    finally:
        _forced.reset(token)


def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    mask: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
) -> Tensor:
    """Convolve with sampling points moved by `offset` and weighted by `mask` (eq. 4).

    Args:
        x: Input [B, Cin, H, W]; zero outside.
        offset: [B, G·2·K, Ho, Wo] for K kernel positions and G deformable groups: group, then kernel position
            in row order, then (y, x), in pixels of the input.
        mask: [B, G·K, Ho, Wo], the position-specific weights m_k.
        weight: [Cout, Cin / groups, kh, kw].
        bias: [Cout] or None.
        stride: Step between output positions, in both directions.
        padding: Zeros added on every side.
        dilation: Distance between kernel positions.

    Returns:
        [B, Cout, Ho, Wo].
    """
    arguments = DeformConvArguments(x, offset, mask, weight, bias, stride, padding, dilation)
    shape = arguments.geometry()
    if bias is not None and list(bias.shape) != [weight.shape[0]]:
        raise InputError(f"The bias must have shape [{weight.shape[0]}], but has {list(bias.shape)}.")
    if x.is_meta:  # a meta tensor has a shape but no values to compute
        return x.new_empty(x.shape[0], weight.shape[0], shape.height, shape.width)
    implementation = _forced.get() or _default_implementation(x)
    return implementation(arguments)


def _default_implementation(x: Tensor) -> DeformConv:
    if x.is_cuda and not is_recording():
        return _torchvision_operator() or deform_conv2d_grid
    if x.device.type == "cpu" and not is_recording():
        return deform_conv2d_bags
    return deform_conv2d_grid


def _sampling_points(arguments: DeformConvArguments, shape: Geometry) -> tuple[Tensor, Tensor]:
    """Return y and x of p + p_k + Δp_k, each [B, G, K, Ho, Wo], in pixels of the input."""
    stride, padding, dilation = arguments.stride, arguments.padding, arguments.dilation
    kernel_height, kernel_width = arguments.weight.shape[2:]
    moved = at_least_float32(arguments.offset).unflatten(1, (shape.deform_groups, shape.points, 2))
    like = {"dtype": moved.dtype, "device": moved.device}
    rows = torch.arange(shape.height, **like).mul(stride).sub(padding).view(-1, 1)
    columns = torch.arange(shape.width, **like).mul(stride).sub(padding)
    kernel_rows = torch.arange(kernel_height, **like).mul(dilation).repeat_interleave(kernel_width)
    kernel_columns = torch.arange(kernel_width, **like).mul(dilation).repeat(kernel_height)
    y = moved[:, :, :, 0] + (rows + kernel_rows.view(-1, 1, 1))
    x = moved[:, :, :, 1] + (columns + kernel_columns.view(-1, 1, 1))
    return y, x


def deform_conv2d_bags(arguments: DeformConvArguments) -> Tensor:
    """`deform_conv2d` by `embedding_bag`: each sampling point is a bag of four bilinearly weighted neighbors.

    Tensors are channels-last throughout, so that a neighbor is one contiguous row of channels and the samples
    need no reordering before the matrix product with the kernel.
    """
    x = arguments.x
    batch, channels, rows, columns = x.shape
    shape = arguments.geometry()
    y, xs = _sampling_points(arguments, shape)
    order = (0, 3, 4, 1, 2)  # [B, G, K, Ho, Wo] → [B, Ho, Wo, G, K]
    y, xs = y.permute(order), xs.permute(order)
    mask = _split(arguments.mask, shape).permute(order).to(y.dtype)

    top, left = y.floor(), xs.floor()
    down, right = y - top, xs - left
    top, left = top.int(), left.int()
    neighbor_y = torch.stack((top, top, top + 1, top + 1), dim=-1)
    neighbor_x = torch.stack((left, left + 1, left, left + 1), dim=-1)
    up = (1 - down) * mask  # the mask multiplies all four neighbors
    down = down * mask
    bilinear = torch.stack((up * (1 - right), up * right, down * (1 - right), down * right), dim=-1)
    inside = (neighbor_y >= 0) & (neighbor_y < rows) & (neighbor_x >= 0) & (neighbor_x < columns)
    bilinear = bilinear * inside

    # The row of `table` that holds a neighbor is ((b·H + y)·W + x)·G + g.
    images = torch.arange(batch, dtype=torch.int32, device=x.device).view(-1, 1, 1, 1, 1, 1) * rows
    groups = torch.arange(shape.deform_groups, dtype=torch.int32, device=x.device).view(-1, 1, 1)
    index = images + neighbor_y.clamp(0, rows - 1)
    index = (index * columns + neighbor_x.clamp(0, columns - 1)) * shape.deform_groups + groups
    table = x.permute(0, 2, 3, 1).reshape(-1, channels // shape.deform_groups).to(bilinear.dtype)
    samples = weighted_bags(index.view(-1, 4), table, bilinear.view(-1, 4))  # [B·Ho·Wo·G·K, Cin/G]
    samples = samples.to(x.dtype).view(batch, shape.height, shape.width, -1)  # [B, Ho, Wo, G·K·Cin/G]
    kernel = _dense_kernel(arguments.weight, shape).transpose(2, 3).flatten(1)  # the same order of columns
    return F.linear(samples, kernel.to(x.dtype), arguments.bias).permute(0, 3, 1, 2)


def _split(mask: Tensor, shape: Geometry) -> Tensor:
    """Return the mask as [B, G, K, Ho, Wo]."""
    grouped: Tensor = mask.unflatten(1, (shape.deform_groups, shape.points))
    return grouped


def _dense_kernel(weight: Tensor, shape: Geometry) -> Tensor:
    """Return the kernel as [Cout, G, Cin/G, K], with zeros between the groups of a grouped convolution."""
    if shape.groups > 1:
        blocks = weight.flatten(2).unflatten(0, (shape.groups, -1))  # [groups, Cout/groups, Cin/groups, K]
        own = torch.eye(shape.groups, dtype=weight.dtype, device=weight.device)
        weight = torch.einsum("goik,gh->gohik", blocks, own).flatten(2, 3).flatten(0, 1)
    dense: Tensor = weight.flatten(2).unflatten(1, (shape.deform_groups, -1))
    return dense


def deform_conv2d_grid(arguments: DeformConvArguments) -> Tensor:
    """`deform_conv2d` by `grid_sample`, with the K sampling points of a group stacked along the height."""
    x = arguments.x
    batch, channels, rows, columns = x.shape
    shape = arguments.geometry()
    y, xs = _sampling_points(arguments, shape)
    grid = torch.stack(((2 * xs + 1) / columns - 1, (2 * y + 1) / rows - 1), dim=-1)
    grid = grid.flatten(0, 1).flatten(1, 2)  # [B·G, K·Ho, Wo, 2]
    grouped = x.reshape(batch * shape.deform_groups, -1, rows, columns).to(grid.dtype)
    samples = F.grid_sample(grouped, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    samples = samples.unflatten(2, (shape.points, -1))  # [B·G, Cin/G, K, Ho, Wo]
    samples = samples * _split(arguments.mask, shape).flatten(0, 1).unsqueeze(1)
    samples = samples.to(x.dtype).reshape(batch, channels * shape.points, -1)
    kernel = _dense_kernel(arguments.weight, shape).flatten(1)
    output = torch.matmul(kernel.to(x.dtype), samples)  # [B, Cout, Ho·Wo]
    output = output.view(batch, -1, shape.height, shape.width)
    bias = arguments.bias
    return output if bias is None else output + bias.to(output.dtype).view(-1, 1, 1)


@functools.cache
def _torchvision_operator() -> DeformConv | None:
    """Torchvision's CUDA kernel, or None if torchvision is missing or does not match the installed torch."""
    try:
        from torchvision.ops import deform_conv2d as operator
    except (ImportError, RuntimeError):
        return None

    def through_torchvision(arguments: DeformConvArguments) -> Tensor:
        dtype = arguments.x.dtype
        output: Tensor = operator(
            arguments.x,
            arguments.offset.to(dtype),
            arguments.weight.to(dtype),
            arguments.bias,
            arguments.stride,
            arguments.padding,
            arguments.dilation,
            arguments.mask.to(dtype),
        )
        return output

    return through_torchvision
