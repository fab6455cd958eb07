"""Refinement: upsample, look at the images, correct."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from aanet.models.layers import DeformConv2d
from aanet.models.refinement import (
    ColorRefinement,
    HierarchicalRefinement,
    NoRefinement,
    WarpedRefinement,
    hourglass_refinement,
    stereodrnet_refinement,
)
from helpers import naive
from helpers.small_networks import randomize_weights


def images(height: int, width: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(1, 3, height, width, generator=generator)
    return left, torch.randn(1, 3, height, width, generator=generator)


def seen_by(module: nn.Module) -> list[Tensor]:
    """Collect the inputs of a module."""
    inputs: list[Tensor] = []
    module.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    return inputs


@pytest.fixture
def disparity() -> Tensor:
    return 4 * torch.rand(1, 6, 9, generator=torch.Generator().manual_seed(1))


def test_warped_refinement_sees_the_error_the_left_image_and_the_disparity(disparity: Tensor) -> None:
    refinement = stereodrnet_refinement().eval()
    randomize_weights(refinement)
    left, right = images(6, 9)
    of_images, of_disparity = seen_by(refinement.image_conv), seen_by(refinement.disparity_conv)
    of_body, of_residual = seen_by(refinement.body), seen_by(refinement.residual)
    refined = refinement(disparity, left, right)
    error = naive.warp_by_disparity(right, disparity) - left
    torch.testing.assert_close(of_images[0], torch.cat((error, left), dim=1), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(of_disparity[0], disparity.unsqueeze(1))
    expected = torch.cat((refinement.image_conv(of_images[0]), refinement.disparity_conv(of_disparity[0])), 1)
    torch.testing.assert_close(of_body[0], expected)
    residual = refinement.residual(of_residual[0])[:, 0]
    torch.testing.assert_close(refined, (disparity + residual).clamp(min=0))


def test_the_warp_error_of_a_true_disparity_is_zero() -> None:
    refinement = stereodrnet_refinement().eval()
    left, _ = images(6, 20)
    right = torch.roll(left, -3, dims=3)
    seen = seen_by(refinement.image_conv)
    refinement(torch.full((1, 6, 20), 3.0), left, right)
    assert seen[0][:, :3, :, 3:].abs().max() < 1e-4


def test_color_refinement_sees_the_disparity_and_the_left_image_only(disparity: Tensor) -> None:
    refinement = ColorRefinement().eval()
    left, right = images(6, 9)
    seen = seen_by(refinement.start)
    refined = refinement(disparity, left, right)
    torch.testing.assert_close(seen[0], torch.cat((disparity.unsqueeze(1), left), dim=1))
    torch.testing.assert_close(refinement(disparity, left, torch.zeros_like(right)), refined)


@pytest.mark.parametrize("build", [stereodrnet_refinement, hourglass_refinement, ColorRefinement])
def test_refined_disparities_are_never_negative(build: type[nn.Module]) -> None:
    refinement = build().eval()
    nn.init.constant_(refinement.get_parameter("residual.bias"), -100)
    left, right = images(16, 16)
    assert not refinement(torch.ones(1, 16, 16), left, right).any()


def test_dilations_of_the_residual_blocks() -> None:
    for refinement in (stereodrnet_refinement(), ColorRefinement()):
        dilations = [block.body[0][0].dilation[0] for block in refinement.body]
        assert dilations == [1, 2, 4, 8, 1, 1]


def test_the_hourglass_refinement_has_five_deformable_convolutions() -> None:
    refinement = hourglass_refinement()
    assert sum(isinstance(m, DeformConv2d) for m in refinement.modules()) == 5
    assert refinement.size_multiple == 16


class _Unchanged(nn.Module):
    """A step that notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[Tensor, Tensor, Tensor]] = []

    def forward(self, disparity: Tensor, left: Tensor, right: Tensor) -> Tensor:
        self.given.append((disparity, left, right))
        return disparity


def test_every_step_gets_images_and_disparity_of_its_own_size() -> None:
    steps = {4: _Unchanged(), 2: _Unchanged(), 1: _Unchanged()}
    left, right = images(8, 24)
    coarse = torch.full((1, 1, 3), 1.5)  # at an eighth: 12 pixels of the image
    refined = HierarchicalRefinement(dict(steps))(coarse, left, right)
    for (scale, step), disparity in zip(steps.items(), refined, strict=True):
        given, small_left, small_right = step.given[0]
        torch.testing.assert_close(given, torch.full((1, 8 // scale, 24 // scale), 12.0 / scale))
        torch.testing.assert_close(disparity, given)
        torch.testing.assert_close(small_left, naive.resize(left, 8 // scale, 24 // scale))
        torch.testing.assert_close(small_right, naive.resize(right, 8 // scale, 24 // scale))


def test_from_a_third_to_a_half_values_grow_by_one_and_a_half() -> None:
    left, right = images(12, 24)
    half, full = HierarchicalRefinement({2: _Unchanged(), 1: _Unchanged()})(
        torch.full((1, 4, 8), 2.0), left, right
    )
    torch.testing.assert_close(half, torch.full((1, 6, 12), 3.0))
    torch.testing.assert_close(full, torch.full((1, 12, 24), 6.0))


def test_size_multiples_follow_from_the_steps() -> None:
    assert HierarchicalRefinement({2: hourglass_refinement(), 1: hourglass_refinement()}).size_multiple == 32
    assert HierarchicalRefinement({4: ColorRefinement(), 1: ColorRefinement()}).size_multiple == 4
    assert NoRefinement()(torch.ones(1, 2, 2), *images(2, 2)) == []
    assert WarpedRefinement(nn.Identity()).size_multiple == 1
