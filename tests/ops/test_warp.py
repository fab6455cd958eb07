"""Warping by a disparity and resizing one are the loops of their definitions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from aanet.ops import resize_disparity, warp_by_disparity
from helpers import naive


def pair(*shape: int, reach: float = 4.0) -> tuple[Tensor, Tensor]:
    """A random image [B, C, H, W] and disparities from 0 to `reach`, no whole numbers among them."""
    generator = torch.Generator().manual_seed(3)
    image = torch.randn(shape, generator=generator, dtype=torch.float64)
    disparity = torch.rand(shape[0], *shape[2:], generator=generator, dtype=torch.float64)
    return image, reach * (0.01 + 0.99 * disparity)


@pytest.mark.parametrize(
    ("shape", "reach"), [((2, 3, 3, 7), 4.0), ((1, 2, 2, 5), 20.0), ((1, 1, 3, 1), 2.0), ((1, 1, 1, 2), 1.0)]
)
def test_warp_has_values_and_gradients_of_the_loop(shape: tuple[int, ...], reach: float) -> None:
    naive.assert_same_values_and_gradients(
        warp_by_disparity, naive.warp_by_disparity, *pair(*shape, reach=reach)
    )


def test_warp_gradcheck() -> None:
    # Between 0.1 and 0.9 of a pixel, away from the kinks of bilinear sampling; the first column is clamped.
    image, disparity = pair(1, 2, 2, 4)
    disparity = disparity.remainder(1) * 0.8 + 0.1
    assert torch.autograd.gradcheck(warp_by_disparity, (image.requires_grad_(), disparity.requires_grad_()))


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_warp_by_a_whole_number_moves_pixels_exactly(shift: int) -> None:
    image, disparity = pair(1, 2, 4, 9)
    warped = warp_by_disparity(image, torch.full_like(disparity, shift))
    torch.testing.assert_close(warped[..., shift:], image[..., : 9 - shift])
    torch.testing.assert_close(warped[..., :shift], image[..., :1].expand(-1, -1, -1, shift))


def test_warp_by_the_true_disparity_reproduces_the_left_image() -> None:
    left = torch.sin(torch.linspace(0, 12, 200, dtype=torch.float64)).expand(1, 1, 2, 200)
    right = torch.sin(torch.linspace(0, 12, 200, dtype=torch.float64) + 6.5 * 12 / 199).expand(1, 1, 2, 200)
    warped = warp_by_disparity(right, torch.full((1, 2, 200), 6.5, dtype=torch.float64))
    torch.testing.assert_close(warped[..., 7:], left[..., 7:], atol=1e-3, rtol=0)


@pytest.mark.usefixtures("torch_bf16")
def test_warp_keeps_the_dtype_of_the_image_and_exact_coordinates() -> None:
    stripes = (torch.arange(600) % 2).to(torch.bfloat16).expand(1, 1, 2, 600)
    with torch.autocast("cpu", torch.bfloat16):
        warped = warp_by_disparity(stripes, torch.full((1, 2, 600), 0.5))
    assert warped.dtype == torch.bfloat16
    torch.testing.assert_close(warped[..., 1:].float(), torch.full((1, 1, 2, 599), 0.5), atol=0.01, rtol=0)


def test_warp_does_not_round_a_double_image_to_single() -> None:
    image, disparity = pair(1, 1, 2, 6)
    image = image + 1e6
    warped = warp_by_disparity(image, torch.zeros_like(disparity, dtype=torch.float32))
    torch.testing.assert_close(warped, image, atol=1e-8, rtol=0)


def test_warp_in_channels_last_is_the_same() -> None:
    image, disparity = pair(2, 3, 4, 6)
    rearranged = image.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(warp_by_disparity(rearranged, disparity), warp_by_disparity(image, disparity))


@pytest.mark.parametrize("size", [(6, 10), (9, 15), (7, 8), (2, 3), (1, 1), (3, 5)])
def test_resize_is_bilinear_and_scales_by_the_width(size: tuple[int, int]) -> None:
    _, disparity = pair(2, 1, 3, 5)
    naive.assert_same_values_and_gradients(
        lambda d: resize_disparity(d, size),
        lambda d: naive.resize(d.unsqueeze(1), *size).squeeze(1) * (size[1] / 5),
        disparity,
    )


def test_resize_gradcheck() -> None:
    _, disparity = pair(1, 1, 3, 4)
    assert torch.autograd.gradcheck(lambda d: resize_disparity(d, (6, 8)), disparity.requires_grad_())


def test_a_slanted_plane_keeps_its_depth_when_it_is_resized() -> None:
    # d(x) = 2 + 0.1 x in pixels; at twice the size the same surface is 2 d at 2 x + 0.5.
    columns = torch.arange(20, dtype=torch.float64)
    plane = (2 + 0.1 * columns).expand(1, 10, 20)
    large = resize_disparity(plane, (20, 40))
    centers = (torch.arange(40, dtype=torch.float64) + 0.5) / 2 - 0.5
    expected = 2 * (2 + 0.1 * centers)
    torch.testing.assert_close(large[0, :, 1:-1], expected[1:-1].expand(20, 38))


class _Both(nn.Module):
    def forward(self, image: Tensor, disparity: Tensor) -> tuple[Tensor, Tensor]:
        return warp_by_disparity(image, disparity), resize_disparity(disparity, (8, 14))


def test_export_reproduces_eager() -> None:
    image, disparity = (x.float() for x in pair(1, 2, 4, 7))
    program = torch.export.export(_Both(), (image, disparity))
    torch.testing.assert_close(program.module()(image, disparity), _Both()(image, disparity))


def test_a_disparity_that_is_not_a_number_does_not_end_the_process() -> None:
    right = torch.rand(1, 3, 8, 40, requires_grad=True)
    disparity = torch.full((1, 8, 40), torch.nan, requires_grad=True)
    warp_by_disparity(right, disparity).sum().backward()
    assert right.grad is not None
    assert torch.isfinite(right.grad).all()
