"""The convolution with its own weight gradient: the same numbers as PyTorch's, where it may be used."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from aanet.models import zoo
from aanet.ops import conv
from aanet.ops.conv import Conv2d, weight_gradient


def channels_last(*shape: int) -> torch.Tensor:
    return torch.randn(shape).contiguous(memory_format=torch.channels_last)


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the uses of our gradient, and use it on processors that have a better one, too."""
    calls: list[int] = []

    def counted(x: torch.Tensor, grad: torch.Tensor, kernel: int, dilation: int) -> torch.Tensor:
        calls.append(1)
        return weight_gradient(x, grad, kernel, dilation)

    monkeypatch.setattr(conv, "weight_gradient", counted)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    return calls


@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (3, 2), (3, 8), (5, 1), (5, 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_are_those_of_pytorch(kernel: int, dilation: int, bias: bool, products: list[int]) -> None:
    ours = Conv2d(6, 4, kernel, padding=dilation * (kernel // 2), dilation=dilation, bias=bias)
    theirs = nn.Conv2d(6, 4, kernel, padding=dilation * (kernel // 2), dilation=dilation, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x = channels_last(2, 6, 11, 17)
    left, right = x.clone().requires_grad_(), x.clone().requires_grad_()
    slope = channels_last(2, 4, 11, 17)
    ours(left).backward(slope)
    theirs(right).backward(slope)
    assert products == [1]
    torch.testing.assert_close(left.grad, right.grad)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-4, rtol=1e-4)


def test_weight_gradient_against_a_loop() -> None:
    x, slope = channels_last(2, 3, 5, 4).double(), channels_last(2, 2, 5, 4).double()
    expected = torch.zeros(2, 3, 3, 3, dtype=torch.float64)
    padded = F.pad(x, (2, 2, 2, 2))
    for out, inp, row, column in itertools.product(range(2), range(3), range(3), range(3)):
        window = padded[:, inp, 2 * row : 2 * row + 5, 2 * column : 2 * column + 4]
        expected[out, inp, row, column] = (window * slope[:, out]).sum()
    torch.testing.assert_close(weight_gradient(x, slope, kernel=3, dilation=2), expected)


@pytest.mark.parametrize(
    "layer",
    [
        Conv2d(4, 4, 1),
        Conv2d(4, 4, 3, stride=2, padding=1),
        Conv2d(4, 4, 3, padding=1, groups=2),
        Conv2d(4, 4, 3, padding=0),
        Conv2d(4, 4, (3, 1), padding=1),
    ],
)
def test_other_convolutions_are_left_to_pytorch(layer: Conv2d, products: list[int]) -> None:
    layer(channels_last(1, 4, 8, 8)).sum().backward()
    assert products == []
    assert layer.weight.grad is not None


@pytest.mark.usefixtures("torch_bf16")
def test_it_steps_aside_where_it_does_not_help(products: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = Conv2d(4, 4, 3, padding=1), channels_last(1, 4, 8, 8)
    layer(x.contiguous(memory_format=torch.contiguous_format)).sum().backward()
    with torch.autocast("cpu", torch.bfloat16):
        layer(x).sum().backward()
    layer.double()(x.double()).sum().backward()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    layer.float()(x).sum().backward()
    assert products == []


def test_networks_train_through_it(products: list[int]) -> None:
    network = zoo.build("stereonet_aa", 32, training_heads=True)
    left, right = channels_last(2, 3, 32, 64), channels_last(2, 3, 32, 64)
    network(left, right).disparity.mean().backward()
    # Two images through six residual blocks and a last convolution, and two refinements of thirteen.
    assert len(products) >= 2 * 13 + 2 * 13
