"""The blocks that several parts share."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.hourglass import StackedHourglass, deformable_window, plain_window
from aanet.models.layers import (
    Bottleneck,
    DeformConv2d,
    ResidualBlock,
    conv2d,
    conv3d_norm,
    conv_norm,
    leaky_relu,
    leaky_residual,
    relu,
    upconv3d_norm,
    upconv_norm,
)
from helpers import naive
from helpers.small_networks import randomize_weights


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("stride", [1, 2])
def test_a_deformable_convolution_starts_as_a_plain_one_of_dilation_2(stride: int) -> None:
    layer = DeformConv2d(4, 6, stride)
    x = random(2, 4, 9, 11)
    offset, mask = layer.predict_points(x)
    assert not offset.any()
    assert (mask == 1).all()
    expected = F.conv2d(x, layer.weight, stride=stride, padding=2, dilation=2)
    torch.testing.assert_close(layer(x), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_deformable_convolution_is_the_loop_at_the_points_it_predicts(stride: int) -> None:
    layer = DeformConv2d(4, 3, stride)
    randomize_weights(layer)
    layer.double()
    x = random(1, 4, 5, 6).double()
    predicted = layer.offset_predictor(x)
    assert predicted.shape[1] == 2 * 3 * 9
    offset, logits = predicted[:, : 2 * 2 * 9], predicted[:, 2 * 2 * 9 :]
    mask = 2 / (1 + torch.exp(-logits))
    expected = naive.deform_conv2d(x, offset, mask, layer.weight, None, stride, 2, 2)
    torch.testing.assert_close(layer(x), expected)


def test_points_are_predicted_from_half_of_the_channels_each() -> None:
    layer = DeformConv2d(4, 4)
    assert layer.offset_predictor.groups == 2
    assert layer.offset_predictor.dilation == layer.offset_predictor.padding == (2, 2)
    assert layer.offset_predictor.bias is not None


def test_in_the_first_step_the_points_already_learn() -> None:
    layer = DeformConv2d(4, 4)
    (layer(random(1, 4, 6, 6)) ** 2).sum().backward()
    assert layer.offset_predictor.weight.grad is not None
    assert layer.offset_predictor.weight.grad.abs().flatten(1).sum(dim=1).all()


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"), [(1, 1, 1), (3, 2, 1), (5, 3, 1), (3, 1, 8), (7, 3, 1)]
)
def test_convolutions_divide_the_size_by_their_stride(kernel: int, stride: int, dilation: int) -> None:
    convolution = conv2d(2, 3, kernel, stride, dilation)
    assert convolution(random(1, 2, 12, 24)).shape == (1, 3, 12 // stride, 24 // stride)
    assert convolution.bias is None


def test_transposed_convolutions_double_the_size() -> None:
    assert upconv_norm(2, 3)(random(1, 2, 3, 5)).shape == (1, 3, 6, 10)
    assert upconv3d_norm(2, 3)(random(1, 2, 3, 5, 4)).shape == (1, 3, 6, 10, 8)
    assert conv3d_norm(2, 3, stride=2)(random(1, 2, 4, 6, 8)).shape == (1, 3, 2, 3, 4)


def test_the_order_is_convolution_norm_activation() -> None:
    block = conv_norm(2, 3, relu()).eval()
    randomize_weights(block)
    x = random(1, 2, 4, 5)
    convolution, norm, _ = block
    assert isinstance(norm, nn.BatchNorm2d)
    expected = naive.batch_norm(naive.conv2d(x, convolution.weight, padding=1), norm).clamp(min=0)
    torch.testing.assert_close(block(x), expected, atol=1e-5, rtol=1e-5)


def test_leaky_relu_has_the_slope_of_the_publications() -> None:
    assert leaky_relu()(torch.tensor([-1.0, 2.0])).tolist() == pytest.approx([-0.2, 2.0])


@pytest.mark.parametrize(("inputs", "stride"), [(4, 1), (3, 1), (4, 2)])
def test_a_residual_block_adds_its_shortcut_and_activates_behind_the_sum(inputs: int, stride: int) -> None:
    block = ResidualBlock(inputs, 4, relu(), leaky_relu(), stride).eval()
    randomize_weights(block)
    x = random(2, inputs, 6, 8) - 1
    kept = x.clone()
    expected = naive.leaky_relu(block.body(x) + block.shortcut(x), 0.2)
    torch.testing.assert_close(block(x), expected)
    assert torch.equal(x, kept), "in-place activations must not reach the input"
    assert isinstance(block.shortcut, nn.Identity) == (inputs == 4 and stride == 1)


def test_dilation_reaches_both_convolutions_of_a_residual_block() -> None:
    convolutions = [m for m in leaky_residual(4, dilation=8).modules() if isinstance(m, nn.Conv2d)]
    assert [c.dilation for c in convolutions] == [(8, 8), (8, 8)]


def test_a_bottleneck_is_three_convolutions_a_shortcut_and_a_relu() -> None:
    block = Bottleneck(4, 2, 8, conv2d(2, 2, stride=2), stride=2).eval()
    randomize_weights(block)
    x = random(1, 4, 6, 8)
    kept = x.clone()
    inner = block.expand(block.window(block.reduce(x)))
    torch.testing.assert_close(block(x), (inner + block.shortcut(x)).clamp(min=0))
    assert torch.equal(x, kept)


@pytest.mark.parametrize(("strong", "deformable"), [(plain_window, 0), (deformable_window, 4)])
def test_an_hourglass_keeps_the_size_and_goes_down_to_a_sixteenth(strong: object, deformable: int) -> None:
    hourglass = StackedHourglass(strong).eval()
    assert sum(isinstance(m, DeformConv2d) for m in hourglass.modules()) == deformable
    smallest: list[tuple[int, ...]] = []
    hourglass.down_first[-1].register_forward_hook(lambda *given: smallest.append(tuple(given[2].shape)))
    assert hourglass(random(1, 32, 16, 32)).shape == (1, 32, 16, 32)
    assert smallest == [(1, 128, 1, 2)]


def test_every_skip_connection_of_an_hourglass_counts() -> None:
    hourglass = StackedHourglass(plain_window).eval()
    randomize_weights(hourglass)
    x = random(1, 32, 16, 16)
    expected = hourglass(x)
    for merge in [*hourglass.up_first, *hourglass.down_second, *hourglass.up_second]:
        handle = merge.register_forward_pre_hook(lambda _, given: (given[0], torch.zeros_like(given[1])))
        assert not torch.equal(hourglass(x), expected)
        handle.remove()
