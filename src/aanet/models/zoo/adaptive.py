"""Networks with adaptive aggregation: AANet, its ablations, AA versions of other networks, and AANet-Fast."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from aanet.models.aggregation import (
    AdaptiveAggregation,
    AdaptiveAggregationModule,
    GlobalAggregation,
    GuidedAggregation,
    GuidedAggregationModule,
    GuidedIntraScaleAggregation,
    IntraScaleAggregation,
    NeighborScaleAggregation,
    stacks,
)
from aanet.models.cost_volume import CorrelationPyramid, CosinePyramid
from aanet.models.fast import ContextStereoNetwork
from aanet.models.features import (
    AANetFeatures,
    FastFeatures,
    FeatureExtractor,
    GANetFeatures,
    GCNetFeatures,
    PSMNetFeatures,
    PyramidFeatures,
    StereoNetFeatures,
)
from aanet.models.hourglass import deformable_window
from aanet.models.layers import DeformConv2d
from aanet.models.network import Architecture, StereoNetwork
from aanet.models.refinement import (
    ColorRefinement,
    ConvexRefinement,
    HierarchicalRefinement,
    hourglass_refinement,
    stereodrnet_refinement,
)
from aanet.models.regression import PeakArgmin, SoftArgmin
from aanet.models.zoo.card import Card, check_max_disparity


def aanet(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """The paper's network."""
    return _on_aanet_features("aanet", max_disparity, training_heads, stacks.with_isa_and_csa)


def aanet_no_isa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """Ablation (table 1): regular 3×3 windows, with cross-scale aggregation."""
    return _on_aanet_features("aanet_no_isa", max_disparity, training_heads, stacks.without_isa)


def aanet_no_csa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """Ablation (table 1): adaptive sampling points, without cross-scale aggregation."""
    return _on_aanet_features("aanet_no_csa", max_disparity, training_heads, stacks.without_csa)


def aanet_no_isa_csa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """Ablation (table 1): regular 3×3 windows, without cross-scale aggregation."""
    return _on_aanet_features("aanet_no_isa_csa", max_disparity, training_heads, stacks.without_isa_and_csa)


def aanet_plus(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """AANet+: GA-Net's features and hourglass refinement."""
    features = PyramidFeatures(GANetFeatures(deformable_window))
    refinement = HierarchicalRefinement({2: hourglass_refinement(), 1: hourglass_refinement()})
    return _adaptive("aanet_plus", max_disparity, training_heads, features, refinement)


def ganet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """GA-Net with adaptive instead of 3D aggregation."""
    features = PyramidFeatures(GANetFeatures(deformable_window))
    refinement = HierarchicalRefinement({2: stereodrnet_refinement(), 1: stereodrnet_refinement()})
    return _adaptive("ganet_aa", max_disparity, training_heads, features, refinement)


def psmnet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """PSMNet with adaptive instead of 3D aggregation."""
    features = PyramidFeatures(PSMNetFeatures())
    refinement = HierarchicalRefinement({2: stereodrnet_refinement(), 1: stereodrnet_refinement()})
    return _adaptive("psmnet_aa", max_disparity, training_heads, features, refinement)


def gcnet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """GC-Net with adaptive instead of 3D aggregation."""
    features = PyramidFeatures(GCNetFeatures())
    refinement = HierarchicalRefinement({1: stereodrnet_refinement()})
    return _adaptive("gcnet_aa", max_disparity, training_heads, features, refinement)


def stereonet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """StereoNet at 1/4 resolution with four adaptive blocks at a single scale: small and fast."""
    features = StereoNetFeatures(halvings=2)
    candidates = _pyramid_candidates("stereonet_aa", max_disparity, features)
    stack = [
        AdaptiveAggregationModule([IntraScaleAggregation.sparse(candidates[0])], nn.Identity())
        for _ in range(4)
    ]
    return StereoNetwork(
        Architecture("stereonet_aa", max_disparity, training_heads),
        features,
        CorrelationPyramid(candidates),
        AdaptiveAggregation(stack, candidates),
        SoftArgmin(),
        HierarchicalRefinement({2: ColorRefinement(), 1: ColorRefinement()}),
    )


def aanet_fast(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """A network for CPUs, not in the paper: pretrained features, and no layers at full resolution."""
    features = FastFeatures()
    check_max_disparity("aanet_fast", max_disparity, features.scales[-1])
    candidates = [max_disparity // scale for scale in features.scales]
    channels = (48, 64, 128)
    blocks = (1, 1, 2)  # per scale, fine to coarse; the coarsest has few pixels
    regular, sparse = GuidedIntraScaleAggregation.regular, GuidedIntraScaleAggregation.sparse
    # Adaptive sampling only in the last module, as late as in the paper, and only at the coarser scales,
    # where it is cheap.
    windows = ((regular, regular, regular), (regular, regular, regular), (regular, sparse, sparse))
    stack = [
        GuidedAggregationModule(
            [
                [build(width, guide) for _ in range(count)]
                for build, width, guide, count in zip(
                    module, channels, features.out_channels, blocks, strict=True
                )
            ],
            GlobalAggregation(channels[-1], features.out_channels[-1]),
            NeighborScaleAggregation(channels),
        )
        for module in windows
    ]
    return ContextStereoNetwork(
        Architecture("aanet_fast", max_disparity, training_heads, regression="peak"),
        features,
        CosinePyramid(candidates),
        GuidedAggregation(candidates, channels, stack),
        PeakArgmin(),
        ConvexRefinement(
            factor=features.scales[0],
            context_channels=features.out_channels[0],
            detail_channels=features.detail_channels,
            width=48,
            detail_width=32,
            blocks=2,
        ),
    )


def _on_aanet_features(
    name: str,
    max_disparity: int,
    training_heads: bool,
    build_aggregation: Callable[[list[int], bool], AdaptiveAggregation],
) -> StereoNetwork:
    features = AANetFeatures()
    candidates = _pyramid_candidates(name, max_disparity, features)
    aggregation = build_aggregation(candidates, training_heads)
    return StereoNetwork(
        Architecture(name, max_disparity, training_heads),
        features,
        CorrelationPyramid(candidates[: aggregation.input_scales]),
        aggregation,
        SoftArgmin(),
        HierarchicalRefinement({2: stereodrnet_refinement(), 1: stereodrnet_refinement()}),
    )


def _adaptive(
    name: str,
    max_disparity: int,
    training_heads: bool,
    features: FeatureExtractor,
    refinement: HierarchicalRefinement,
) -> StereoNetwork:
    candidates = _pyramid_candidates(name, max_disparity, features)
    return StereoNetwork(
        Architecture(name, max_disparity, training_heads),
        features,
        CorrelationPyramid(candidates),
        stacks.with_isa_and_csa(candidates, training_heads),
        SoftArgmin(),
        refinement,
    )


def _pyramid_candidates(name: str, max_disparity: int, features: FeatureExtractor) -> list[int]:
    """Return the candidates per scale; those of the coarsest must split into the deformable groups."""
    check_max_disparity(name, max_disparity, features.scales[-1] * DeformConv2d.GROUPS)
    return [max_disparity // scale for scale in features.scales]


CARDS: dict[str, Card] = {
    "aanet": Card(
        title="AANet",
        build=aanet,
        summary="the paper's network: ResNet features, adaptive aggregation at three scales",
        when="For comparisons with the paper, and with the authors' checkpoints for Scene "
        "Flow and KITTI. On a CPU, AANet-Fast is faster and more accurate with the "
        "bundled weights.",
        bytes_per_pixel=800,
    ),
    "aanet_plus": Card(
        title="AANet+",
        build=aanet_plus,
        summary="hourglass features and refinement: the most accurate",
        when="For the highest accuracy of the paper's adaptive networks, with the authors' "
        "checkpoints or your own training; it needs three times the memory of AANet.",
        bytes_per_pixel=2400,
    ),
    "stereonet_aa": Card(
        title="StereoNet-AA",
        build=stereonet_aa,
        summary="one scale, half a million parameters: the fastest",
        when="For the smallest weights (1 MB) and little memory, where thin structures and "
        "edges matter less.",
        bytes_per_pixel=500,
        replaces="stereonet",
    ),
    "aanet_fast": Card(
        title="AANet-Fast",
        build=aanet_fast,
        summary="designed for CPUs: pretrained features, guided aggregation, convex upsampling",
        when="The default: the most accurate of the bundled weights, and the fastest network on a CPU.",
        bytes_per_pixel=600,
        in_paper=False,
    ),
    "gcnet_aa": Card(
        title="GC-Net-AA",
        build=gcnet_aa,
        summary="GC-Net with adaptive aggregation",
        when="To study what adaptive aggregation does to GC-Net (table 2), or with the authors' checkpoint.",
        bytes_per_pixel=1300,
        replaces="gcnet",
    ),
    "psmnet_aa": Card(
        title="PSMNet-AA",
        build=psmnet_aa,
        summary="PSMNet with adaptive aggregation",
        when="To study what adaptive aggregation does to PSMNet (table 2), or with the authors' checkpoint.",
        bytes_per_pixel=1000,
        replaces="psmnet",
    ),
    "ganet_aa": Card(
        title="GA-Net-AA",
        build=ganet_aa,
        summary="GA-Net with adaptive aggregation",
        when="To study what adaptive aggregation does to GA-Net (table 2), or with the authors' checkpoint.",
        bytes_per_pixel=1100,
        replaces="ganet",
    ),
    "aanet_no_isa": Card(
        title="AANet w/o ISA",
        build=aanet_no_isa,
        summary="ablation: without intra-scale aggregation",
        when="To reproduce the ablation of table 1.",
        bytes_per_pixel=800,
    ),
    "aanet_no_csa": Card(
        title="AANet w/o CSA",
        build=aanet_no_csa,
        summary="ablation: without cross-scale aggregation",
        when="To reproduce the ablation of table 1.",
        bytes_per_pixel=800,
    ),
    "aanet_no_isa_csa": Card(
        title="AANet w/o ISA & CSA",
        build=aanet_no_isa_csa,
        summary="ablation: without intra-scale and cross-scale aggregation",
        when="To reproduce the ablation of table 1.",
        bytes_per_pixel=800,
    ),
}
