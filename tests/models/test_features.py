"""Every extractor gives the maps it promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from aanet.models.features import (
    AANetFeatures,
    FeatureExtractor,
    GANetFeatures,
    GCNetFeatures,
    PSMNetFeatures,
    PyramidFeatures,
    StereoNetFeatures,
)
from aanet.models.features.aanet import FeaturePyramid
from aanet.models.hourglass import deformable_window, plain_window
from aanet.models.layers import Bottleneck, DeformConv2d
from helpers.small_networks import randomize_weights

EXTRACTORS: dict[str, Callable[[], FeatureExtractor]] = {
    "aanet": AANetFeatures,
    "ganet": lambda: GANetFeatures(plain_window),
    "ganet, deformable": lambda: GANetFeatures(deformable_window),
    "gcnet": GCNetFeatures,
    "psmnet": PSMNetFeatures,
    "stereonet": lambda: StereoNetFeatures(halvings=3),
    "ganet pyramid": lambda: PyramidFeatures(GANetFeatures(deformable_window)),
    "gcnet pyramid": lambda: PyramidFeatures(GCNetFeatures()),
    "psmnet pyramid": lambda: PyramidFeatures(PSMNetFeatures()),
}


@pytest.mark.parametrize("build", EXTRACTORS.values(), ids=EXTRACTORS.keys())
def test_maps_have_the_scales_and_channels_that_were_promised(build: Callable[[], FeatureExtractor]) -> None:
    with torch.device("meta"):
        features = build().eval()
        height = features.sizes.minimum
        width = height + features.sizes.multiple
        maps = features(torch.empty(2, 3, height, width))
    assert len(maps) == len(features.scales) == len(features.out_channels)
    for x, scale, channels in zip(maps, features.scales, features.out_channels, strict=True):
        assert x.shape == (2, channels, height // scale, width // scale)


def test_psmnet_needs_images_of_256_pixels_for_its_largest_window() -> None:
    assert PSMNetFeatures().sizes.minimum == 256
    assert PyramidFeatures(PSMNetFeatures()).sizes.minimum == 256


def test_aanet_has_forty_layers_six_of_them_deformable() -> None:
    features = AANetFeatures()
    bottlenecks = [m for m in features.modules() if isinstance(m, Bottleneck)]
    assert [len(stage) for stage in features.stages] == [3, 4, 6]
    assert 1 + 3 * len(bottlenecks) == 40
    deformable = [b for b in bottlenecks if isinstance(b.window[0], DeformConv2d)]
    assert deformable == list(features.stages[2])


def test_plain_bottlenecks_start_as_their_shortcut() -> None:
    features = AANetFeatures()
    for block in (m for m in features.modules() if isinstance(m, Bottleneck)):
        norm = block.expand[1]
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.weight.any() == isinstance(block.window[0], DeformConv2d)


def test_the_pyramid_brings_coarse_levels_to_fine_ones_by_repetition() -> None:
    pyramid = FeaturePyramid([4, 6, 8], 3).eval()
    randomize_weights(pyramid)
    maps = [torch.randn(1, 4, 8, 12), torch.randn(1, 6, 4, 6), torch.randn(1, 8, 2, 3)]
    merged = [lateral(x) for lateral, x in zip(pyramid.lateral, maps, strict=True)]
    for fine in (1, 0):
        for y in range(merged[fine].shape[2]):
            for x in range(merged[fine].shape[3]):
                merged[fine][:, :, y, x] += merged[fine + 1][:, :, y // 2, x // 2]
    expected = [smooth(x) for smooth, x in zip(pyramid.smooth, merged, strict=True)]
    for ours, twin in zip(pyramid(maps), expected, strict=True):
        torch.testing.assert_close(ours, twin)


class _Constant(nn.Module):
    """Stands for a pooling branch and says which window it has."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.full((x.shape[0], 32, 1, 1), float(self.window))


def test_psmnet_pools_over_four_windows_and_fuses_in_the_authors_order() -> None:
    features = PSMNetFeatures().eval()
    assert [pool[0].kernel_size for pool in features.pooling] == [64, 32, 16, 8]
    features.pooling = nn.ModuleList(_Constant(window) for window in (64, 32, 16, 8))
    seen: list[torch.Tensor] = []
    features.fuse.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.inference_mode():
        features(torch.randn(1, 3, 32, 32))
    # 64 channels of the second stage, 128 of the last, then 32 of each window.
    assert seen[0].shape == (1, 320, 8, 8)
    assert seen[0][0, 192::32, 0, 0].tolist() == [8, 16, 32, 64]
