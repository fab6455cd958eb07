"""Naive twins: every operator again as plain loops over pixels, slow and easy to believe.

All are differentiable, so that `assert_same_values_and_gradients` can compare gradients, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def assert_same_values_and_gradients(
    function: Callable[..., Tensor], twin: Callable[..., Tensor], *inputs: Tensor, tolerance: float = 1e-9
) -> None:
    """Compare two functions, and the gradients of a random weighting of their outputs, at `inputs`."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    ours, expected = function(*leaves), twin(*leaves)
    assert ours.shape == expected.shape
    torch.testing.assert_close(ours, expected, atol=tolerance, rtol=tolerance)
    generator = torch.Generator().manual_seed(11)
    weighting = torch.randn(ours.shape, generator=generator, dtype=ours.dtype)
    our_gradients = torch.autograd.grad((ours * weighting).sum(), leaves)
    gradients = torch.autograd.grad((expected * weighting).sum(), leaves)
    for index, (our_gradient, gradient) in enumerate(zip(our_gradients, gradients, strict=True)):
        torch.testing.assert_close(
            our_gradient,
            gradient,
            atol=tolerance,
            rtol=tolerance,
            msg=lambda text, index=index: f"gradient of input {index}: {text}",
        )


def bilinear(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Sample [C, H, W] at one point, zero outside; returns [C]."""
    channels, height, width = image.shape
    total = image.new_zeros(channels)
    top, left = math.floor(y.item()), math.floor(x.item())
    for row in (top, top + 1):
        for column in (left, left + 1):
            if 0 <= row < height and 0 <= column < width:
                total = total + (1 - (y - row).abs()) * (1 - (x - column).abs()) * image[:, row, column]
    return total


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
    """Modulated deformable convolution, one output pixel and kernel position after the other."""
    outputs, per_group, kernel_height, kernel_width = weight.shape
    points = kernel_height * kernel_width
    deform_groups = mask.shape[1] // points
    per_deform_group = x.shape[1] // deform_groups
    groups = x.shape[1] // per_group
    images = []
    for b in range(x.shape[0]):
        pixels = []
        for i in range(mask.shape[2]):
            for j in range(mask.shape[3]):
                pixel = x.new_zeros(outputs) if bias is None else bias
                for k in range(points):
                    samples = []  # of all input channels at this kernel position
                    for g in range(deform_groups):
                        dy = offset[b, (g * points + k) * 2, i, j]
                        dx = offset[b, (g * points + k) * 2 + 1, i, j]
                        y = i * stride - padding + k // kernel_width * dilation + dy
                        xs = j * stride - padding + k % kernel_width * dilation + dx
                        part = x[b, g * per_deform_group : (g + 1) * per_deform_group]
                        samples.append(bilinear(part, y, xs) * mask[b, g * points + k, i, j])
                    kernel = weight[:, :, k // kernel_width, k % kernel_width]
                    pixel = pixel + _grouped_product(kernel, torch.cat(samples), groups)
                pixels.append(pixel)
        images.append(torch.stack(pixels, dim=1).view(outputs, *mask.shape[2:]))
    return torch.stack(images)


def _grouped_product(kernel: Tensor, channels: Tensor, groups: int) -> Tensor:
    """[Cout, Cin / groups] times [Cin] → [Cout]."""
    kernels, inputs = kernel.chunk(groups), channels.chunk(groups)
    return torch.cat([k @ c for k, c in zip(kernels, inputs, strict=True)])


def conv2d(x: Tensor, weight: Tensor, stride: int = 1, padding: int = 0, dilation: int = 1) -> Tensor:
    """An ordinary convolution: a deformable one that moves no point."""
    height = (x.shape[2] + 2 * padding - dilation * (weight.shape[2] - 1) - 1) // stride + 1
    width = (x.shape[3] + 2 * padding - dilation * (weight.shape[3] - 1) - 1) // stride + 1
    points = weight.shape[2] * weight.shape[3]
    offset = x.new_zeros(x.shape[0], 2 * points, height, width)
    mask = x.new_ones(x.shape[0], points, height, width)
    return deform_conv2d(x, offset, mask, weight, None, stride, padding, dilation)


def batch_norm(x: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    """Batch norm as it is in evaluation, channel by channel."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    channels = []
    for c in range(x.shape[1]):
        deviation = torch.sqrt(norm.running_var[c] + norm.eps)
        channels.append((x[:, c] - norm.running_mean[c]) / deviation * norm.weight[c] + norm.bias[c])
    return torch.stack(channels, dim=1)


def leaky_relu(x: Tensor, slope: float) -> Tensor:
    return torch.where(x > 0, x, slope * x)


def resize(x: Tensor, height: int, width: int) -> Tensor:
    """Resize [B, C, h, w] bilinearly; pixels are squares whose centers are sampled (align_corners false)."""
    rows = []
    for i in range(height):
        row = []
        for j in range(width):
            y = min(max((i + 0.5) * x.shape[2] / height - 0.5, 0.0), x.shape[2] - 1.0)
            xs = min(max((j + 0.5) * x.shape[3] / width - 0.5, 0.0), x.shape[3] - 1.0)
            top, left = int(y), int(xs)
            below, right = min(top + 1, x.shape[2] - 1), min(left + 1, x.shape[3] - 1)
            down, across = y - top, xs - left
            upper = (1 - across) * x[:, :, top, left] + across * x[:, :, top, right]
            lower = (1 - across) * x[:, :, below, left] + across * x[:, :, below, right]
            row.append((1 - down) * upper + down * lower)
        rows.append(torch.stack(row, dim=2))
    return torch.stack(rows, dim=2)


def _volume(left: Tensor, right: Tensor, candidates: int, compare: Callable[..., Tensor]) -> Tensor:
    """Apply `compare` to the channels of left(h, w) and right(h, w - d); zeros where w - d is outside."""
    batch, _, height, width = left.shape
    zero = torch.zeros_like(compare(left[:, :, 0, 0], right[:, :, 0, 0]))
    planes: list[list[list[Tensor]]] = []
    for d in range(candidates):
        planes.append([])
        for h in range(height):
            planes[d].append(
                [compare(left[:, :, h, w], right[:, :, h, w - d]) if w >= d else zero for w in range(width)]
            )
    # [D][H][W] of [B, C] → [B, C, D, H, W]
    stacked = torch.stack([torch.stack([torch.stack(row) for row in plane]) for plane in planes])
    return stacked.permute(3, 4, 0, 1, 2).reshape(batch, -1, candidates, height, width)


def correlation_volume(left: Tensor, right: Tensor, candidates: int) -> Tensor:
    """Equation 2; [B, D, H, W]."""
    channels = left.shape[1]

    def mean_product(a: Tensor, b: Tensor) -> Tensor:
        return sum_of(a[:, n] * b[:, n] for n in range(channels)).unsqueeze(1) / channels

    return _volume(left, right, candidates, mean_product).squeeze(1)


def difference_volume(left: Tensor, right: Tensor, candidates: int) -> Tensor:
    return _volume(left, right, candidates, torch.sub)


def concatenation_volume(left: Tensor, right: Tensor, candidates: int) -> Tensor:
    return _volume(left, right, candidates, lambda a, b: torch.cat((a, b), dim=1))


def warp_by_disparity(right: Tensor, disparity: Tensor) -> Tensor:
    """output(h, w) = right(h, w - d), the border repeated."""
    batch, _, height, width = right.shape
    images = []
    for b in range(batch):
        pixels = []
        for h in range(height):
            for w in range(width):
                x = (w - disparity[b, h, w]).clamp(0, width - 1)
                left = min(int(x.item()), max(width - 2, 0))
                next_one = min(left + 1, width - 1)
                pixels.append((1 - (x - left)) * right[b, :, h, left] + (x - left) * right[b, :, h, next_one])
        images.append(torch.stack(pixels, dim=1).view(-1, height, width))
    return torch.stack(images)


def soft_argmin(scores: Tensor) -> Tensor:
    """Equation 7: the expected candidate."""
    result = torch.zeros_like(scores[:, 0])
    for b in range(scores.shape[0]):
        for h in range(scores.shape[2]):
            for w in range(scores.shape[3]):
                powers = [torch.exp(score) for score in scores[b, :, h, w]]
                expected = sum_of(d * power for d, power in enumerate(powers)) / sum_of(powers)
                result = result.index_put(tuple(map(torch.tensor, (b, h, w))), expected)
    return result


def peak_argmin(scores: Tensor, reach: int = 2) -> Tensor:
    """Equation 7 over the candidates around the peak, which five times the scores point to."""
    result = torch.zeros_like(scores[:, 0])
    for b in range(scores.shape[0]):
        for h in range(scores.shape[2]):
            for w in range(scores.shape[3]):
                values = [5 * value for value in scores[b, :, h, w].tolist()]
                sharp = [math.exp(value - max(values)) for value in values]
                peak = sum(d * power for d, power in enumerate(sharp)) / sum(sharp)
                shares = {d: min(max(reach + 1 - abs(d - peak), 0), 1) for d in range(len(values))}
                powers = {d: share * torch.exp(scores[b, d, h, w]) for d, share in shares.items()}
                expected = sum_of(d * power for d, power in powers.items()) / sum_of(powers.values())
                result = result.index_put(tuple(map(torch.tensor, (b, h, w))), expected)
    return result


def semi_global_aggregation(volume: Tensor, weights: Tensor) -> Tensor:
    """SGA: follow every path of every direction pixel by pixel."""
    batch, channels, candidates, height, width = volume.shape
    directions = [(1, 0), (-1, 0), (0, 1), (0, -1)]  # down, up, right, left
    results = []
    for index, (dy, dx) in enumerate(directions):
        done: dict[tuple[int, int], list[Tensor]] = {}
        rows = range(height) if dy >= 0 else reversed(range(height))
        for h in rows:
            for w in range(width) if dx >= 0 else reversed(range(width)):
                cost = [volume[:, :, d, h, w] for d in range(candidates)]  # each [B, C]
                weight = weights[:, index, :, :, h, w]  # [B, C, 5]
                previous = done.get((h - dy, w - dx))
                pixel = []
                for d in range(candidates):
                    terms = [cost[d]] * 5
                    if previous is not None:
                        terms[1] = previous[d]
                        terms[2] = previous[d - 1] if d > 0 else cost[d]
                        terms[3] = previous[d + 1] if d < candidates - 1 else cost[d]
                        terms[4] = torch.stack(previous).amax(dim=0)
                    pixel.append(sum_of(weight[:, :, k] * term for k, term in enumerate(terms)))
                done[h, w] = pixel
        flat = [torch.stack(done[h, w]) for h in range(height) for w in range(width)]  # each [D, B, C]
        results.append(torch.stack(flat).view(height, width, candidates, batch, channels))
    return torch.stack(results).amax(dim=0).permute(3, 4, 2, 0, 1)


def local_guided_aggregation(volume: Tensor, weights: Tensor) -> Tensor:
    """LGA: 75 neighbors of every entry, borders repeated."""
    _, candidates, height, width = volume.shape
    entries = []
    for d in range(candidates):
        for h in range(height):
            for w in range(width):
                terms = []
                for k in range(75):
                    near = min(max(d + k // 25 - 1, 0), candidates - 1)
                    row = min(max(h + k % 25 // 5 - 2, 0), height - 1)
                    column = min(max(w + k % 5 - 2, 0), width - 1)
                    terms.append(weights[:, k, h, w] * volume[:, near, row, column])
                entries.append(sum_of(terms))
    return torch.stack(entries, dim=1).view(volume.shape)


def sum_of(terms: Iterable[Tensor]) -> Tensor:
    """Add tensors one by one."""
    first, *rest = terms
    for term in rest:
        first = first + term
    return first
