"""Equations 1 to 7 of the paper, each written out as a loop and held against the code that computes it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from aanet.models.aggregation import CrossScaleAggregation
from aanet.models.regression import soft_argmin
from aanet.ops import correlation_volume, deform_conv2d
from helpers import naive

D, HEIGHT, WIDTH = 4, 5, 6
WINDOW = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]  # p_k for K = 3


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def at(cost: Tensor, d: int, y: float, x: float) -> Tensor:
    """C(d, p) between pixels, zero outside."""
    return naive.bilinear(cost[d : d + 1], cost.new_tensor(y), cost.new_tensor(x))[0]


def aggregate(cost: Tensor, offset: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """Deformable convolution that keeps candidates apart, as the equations do: [D, H, W] → [D, H, W]."""
    per_candidate = weight.view(1, 1, 3, 3).expand(D, 1, 3, 3)
    return deform_conv2d(cost[None], offset[None], mask[None], per_candidate, padding=1)[0]


def test_equation_1_local_aggregation_in_a_window() -> None:
    cost, weights = random(D, HEIGHT, WIDTH), random(9, HEIGHT, WIDTH)  # w(p, q), q in a 3×3 window
    ours = aggregate(cost, cost.new_zeros(18, HEIGHT, WIDTH), weights, cost.new_ones(9))
    for d in range(D):
        for y in range(HEIGHT):
            for x in range(WIDTH):
                expected = sum(
                    weights[k, y, x] * at(cost, d, y + dy, x + dx) for k, (dy, dx) in enumerate(WINDOW)
                )
                torch.testing.assert_close(ours[d, y, x], expected)


@pytest.mark.parametrize("width", [1, 3, WIDTH])
def test_equation_2_correlation(width: int) -> None:
    channels = 3
    left, right = random(channels, HEIGHT, width), random(channels, HEIGHT, width) + 1
    ours = correlation_volume(left[None], right[None], D)[0]
    for d in range(D):
        for h in range(HEIGHT):
            for w in range(width):
                inside = w - d >= 0
                product = sum(left[n, h, w] * right[n, h, w - d] for n in range(channels)) if inside else 0
                torch.testing.assert_close(ours[d, h, w].item(), float(product / channels))


def test_equation_3_adaptive_sampling() -> None:
    cost, offset, weight = random(D, HEIGHT, WIDTH), random(18, HEIGHT, WIDTH), random(9)
    ours = aggregate(cost, offset, cost.new_ones(9, HEIGHT, WIDTH), weight)
    for d in range(D):
        for y in range(HEIGHT):
            for x in range(WIDTH):
                expected = cost.new_zeros(())
                for k, (dy, dx) in enumerate(WINDOW):
                    move_y, move_x = offset[2 * k :, y, x][:2].tolist()
                    expected = expected + weight[k] * at(cost, d, y + dy + move_y, x + dx + move_x)
                torch.testing.assert_close(ours[d, y, x], expected)


def test_equation_4_content_adaptive_weights_shared_within_two_groups_of_candidates() -> None:
    groups = 2
    cost, weight = random(D, HEIGHT, WIDTH), random(9)
    offset, modulation = random(groups * 18, HEIGHT, WIDTH), random(groups * 9, HEIGHT, WIDTH)
    ours = aggregate(cost, offset, modulation, weight)
    for d in range(D):
        group = d // (D // groups)
        for y in range(HEIGHT):
            for x in range(WIDTH):
                expected = cost.new_zeros(())
                for k, (dy, dx) in enumerate(WINDOW):
                    move_y, move_x = offset[group * 18 + 2 * k :, y, x][:2].tolist()
                    m_k = modulation[group * 9 + k, y, x]
                    expected = expected + weight[k] * at(cost, d, y + dy + move_y, x + dx + move_x) * m_k
                torch.testing.assert_close(ours[d, y, x], expected)


@pytest.fixture
def cross_scale() -> CrossScaleAggregation:
    """A CSA of three scales with random weights and statistics, as after training."""
    torch.manual_seed(0)
    module = CrossScaleAggregation([4, 2, 2], output_scales=3).double().eval()
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
                assert tensor is not None
                nn.init.uniform_(tensor, 0.5, 1.5)
    return module


def scales() -> list[Tensor]:
    return [random(1, 4, 8, 12), random(1, 2, 4, 6), random(1, 2, 2, 3)]


def f_k(path: nn.Module, volume: Tensor, target: Tensor, source: int, scale: int) -> Tensor:
    """Equation 6, from its parts' weights: identity, (s - k) stride-2 convolutions, or 1×1 and upsampling."""
    if source == scale:
        return volume
    convolutions = [m for m in path.modules() if isinstance(m, nn.Conv2d)]
    norms = [m for m in path.modules() if isinstance(m, nn.BatchNorm2d)]
    if source > scale:
        (convolution,), (norm,) = convolutions, norms
        assert convolution.kernel_size == (1, 1)
        return naive.resize(
            naive.batch_norm(naive.conv2d(volume, convolution.weight), norm), *target.shape[2:]
        )
    assert len(convolutions) == scale - source
    for index, (convolution, norm) in enumerate(zip(convolutions, norms, strict=True)):
        volume = naive.batch_norm(naive.conv2d(volume, convolution.weight, stride=2, padding=1), norm)
        if index < len(convolutions) - 1:
            volume = naive.leaky_relu(volume, 0.2)
    return volume


def test_equation_5_every_scale_is_the_sum_over_all_scales(cross_scale: CrossScaleAggregation) -> None:
    volumes = scales()
    ours = cross_scale(volumes)
    assert len(ours) == 3
    for s, (output, target) in enumerate(zip(ours, volumes, strict=True)):
        paths = cross_scale.paths[s]
        assert isinstance(paths, nn.ModuleList)
        parts = [f_k(paths[k], volume, target, k, s) for k, volume in enumerate(volumes)]
        torch.testing.assert_close(output, naive.leaky_relu(naive.sum_of(parts), 0.2))


def test_equation_6_upsampling_and_1x1_convolution_may_change_places(
    cross_scale: CrossScaleAggregation,
) -> None:
    # The paper upsamples first; a 1×1 convolution and a batch norm in evaluation commute with that.
    volumes = scales()
    paths = cross_scale.paths[0]
    assert isinstance(paths, nn.ModuleList)
    upsampled_first = paths[2](naive.resize(volumes[2], 8, 12))
    torch.testing.assert_close(upsampled_first, f_k(paths[2], volumes[2], volumes[0], 2, 0))


def test_equation_6_an_odd_scale_is_brought_to_its_neighbor_by_size(
    cross_scale: CrossScaleAggregation,
) -> None:
    # 6 × 10 → 3 × 5 → 2 × 3: twice the coarser size is not the finer one.
    volumes = [random(1, 4, 6, 10), random(1, 2, 3, 5), random(1, 2, 2, 3)]
    assert [x.shape for x in cross_scale(volumes)] == [x.shape for x in volumes]


def test_equation_7_soft_argmin() -> None:
    naive.assert_same_values_and_gradients(soft_argmin, naive.soft_argmin, random(2, 5, 2, 3))
