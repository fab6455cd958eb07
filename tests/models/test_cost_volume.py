"""The modules that compare left and right features."""

from __future__ import annotations

import torch
from torch import Tensor

from aanet.models.cost_volume import (
    ConcatenationVolume,
    CorrelationPyramid,
    DifferenceVolume,
    ProjectedConcatenationVolume,
)
from helpers import naive
from helpers.small_networks import build_small, randomize_weights


def features(*shapes: tuple[int, int, int, int]) -> tuple[list[Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    left = [torch.randn(shape, generator=generator) for shape in shapes]
    return left, [torch.randn(shape, generator=generator) for shape in shapes]


def test_every_scale_has_its_own_candidates_and_surplus_scales_are_left_out() -> None:
    left, right = features((1, 3, 4, 8), (1, 5, 2, 4), (1, 7, 1, 2))
    volumes = CorrelationPyramid([4, 2])(left, right)
    assert len(volumes) == 2
    torch.testing.assert_close(volumes[0], naive.correlation_volume(left[0], right[0], 4))
    torch.testing.assert_close(volumes[1], naive.correlation_volume(left[1], right[1], 2))


def test_one_scale_is_subtracted_or_concatenated() -> None:
    left, right = features((1, 3, 2, 5))
    (difference,), (concatenation,) = DifferenceVolume(3)(left, right), ConcatenationVolume(3)(left, right)
    torch.testing.assert_close(difference, naive.difference_volume(left[0], right[0], 3))
    torch.testing.assert_close(concatenation, naive.concatenation_volume(left[0], right[0], 3))


def test_ganet_projects_left_and_right_each_with_its_own_convolution() -> None:
    module = ProjectedConcatenationVolume(3, channels=4).eval()
    randomize_weights(module)
    left, right = features((1, 4, 3, 5))
    (volume,) = module(left, right)
    expected = naive.concatenation_volume(module.left(left[0]), module.right(right[0]), 3)
    torch.testing.assert_close(volume, expected)


def test_matching_compares_left_with_right_and_not_the_other_way_round() -> None:
    network = build_small("stereonet_aa", randomize=True)
    scene = torch.randn(1, 3, 16, 96, generator=torch.Generator().manual_seed(0))
    left, right = scene[..., :-8], scene[..., 8:]  # two candidates apart at a quarter of the size
    with torch.inference_mode():
        (volume,) = network.cost_volumes(network.extract(left, right))
    margin = 8  # features at the border see zeros
    error = (volume.argmax(dim=1) != 2)[..., 1:-1, margin:-margin].float().mean()
    assert error < 0.2
