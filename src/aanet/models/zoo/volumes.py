"""The networks with 3D convolutions that the paper compares AANet with."""

from __future__ import annotations

from aanet.models.aggregation import (
    GANetAggregation,
    GCNetAggregation,
    PSMNetAggregation,
    StereoNetAggregation,
)
from aanet.models.cost_volume import ConcatenationVolume, DifferenceVolume, ProjectedConcatenationVolume
from aanet.models.features import GANetFeatures, GCNetFeatures, PSMNetFeatures, StereoNetFeatures
from aanet.models.ganet import GuidanceNetwork, GuidedRegression, GuidedStereoNetwork
from aanet.models.hourglass import plain_window
from aanet.models.network import Architecture, StereoNetwork
from aanet.models.refinement import ColorRefinement, HierarchicalRefinement, NoRefinement
from aanet.models.regression import SoftArgmin
from aanet.models.zoo.card import Card, check_max_disparity


def stereonet(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """StereoNet at 1/8 resolution (Khamis et al., ECCV 2018)."""
    features = StereoNetFeatures(halvings=3)
    (scale,) = features.scales
    check_max_disparity("stereonet", max_disparity, scale)
    return StereoNetwork(
        Architecture("stereonet", max_disparity, training_heads),
        features,
        DifferenceVolume(max_disparity // scale),
        StereoNetAggregation(),
        SoftArgmin(),
        HierarchicalRefinement({4: ColorRefinement(), 2: ColorRefinement(), 1: ColorRefinement()}),
    )


def gcnet(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """GC-Net (Kendall et al., ICCV 2017); it has no training heads."""
    features = GCNetFeatures()
    (scale,) = features.scales
    check_max_disparity("gcnet", max_disparity, scale * GCNetAggregation.size_multiple)
    return StereoNetwork(
        Architecture("gcnet", max_disparity, training_heads),
        features,
        ConcatenationVolume(max_disparity // scale),
        GCNetAggregation(),
        SoftArgmin(),
        NoRefinement(),
    )


def psmnet(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """PSMNet with three stacked hourglasses (Chang and Chen, CVPR 2018)."""
    features = PSMNetFeatures()
    (scale,) = features.scales
    check_max_disparity("psmnet", max_disparity, scale * PSMNetAggregation.size_multiple)
    return StereoNetwork(
        Architecture("psmnet", max_disparity, training_heads),
        features,
        ConcatenationVolume(max_disparity // scale),
        PSMNetAggregation(outputs=3 if training_heads else 1),
        SoftArgmin(),
        NoRefinement(),
    )


def ganet(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """GA-Net with its guided aggregation layers (Zhang et al., CVPR 2019)."""
    features = GANetFeatures(plain_window)
    (scale,) = features.scales
    check_max_disparity("ganet", max_disparity, scale * GANetAggregation.size_multiple)
    return GuidedStereoNetwork(
        Architecture("ganet", max_disparity, training_heads),
        features,
        ProjectedConcatenationVolume(max_disparity // scale, features.out_channels[0]),
        GuidanceNetwork(scale),
        GANetAggregation(outputs=3 if training_heads else 1),
        GuidedRegression(max_disparity),
        NoRefinement(),
    )


CARDS: dict[str, Card] = {
    "stereonet": Card(
        title="StereoNet",
        build=stereonet,
        summary="four 3D convolutions at 1/8 resolution",
        when="To reproduce table 2, and for a small network whose disparity range can be "
        "chosen at prediction.",
        bytes_per_pixel=500,
        correlates=False,
        fixed_range=False,
    ),
    "gcnet": Card(
        title="GC-Net",
        build=gcnet,
        summary="nineteen 3D convolutions at 1/2 resolution",
        when="To reproduce table 2. It needs a lot of memory: 17 GB per megapixel.",
        bytes_per_pixel=17000,
        correlates=False,
        fixed_range=False,
    ),
    "psmnet": Card(
        title="PSMNet",
        build=psmnet,
        summary="three stacked 3D hourglasses",
        when="As a strong network with 3D convolutions, to compare with or to train, whose "
        "disparity range can be chosen at prediction.",
        bytes_per_pixel=4100,
        correlates=False,
        fixed_range=False,
    ),
    "ganet": Card(
        title="GA-Net",
        build=ganet,
        summary="semi-global and local guided aggregation",
        when="To reproduce table 2: the most accurate and the slowest of the paper's "
        "networks with 3D convolutions. It runs on torch only.",
        bytes_per_pixel=16000,
        correlates=False,
        fixed_range=False,
        dynamic_shapes=False,
    ),
}
