"""The paper's ten networks and three ablations, and one of our own: a builder for each, and a card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import nn

from aanet.errors import AanetError
from aanet.models.aggregation import (
    AdaptiveAggregation,
    AdaptiveAggregationModule,
    GANetAggregation,
    GCNetAggregation,
    GuidedAggregation,
    GuidedAggregationModule,
    GuidedIntraScaleAggregation,
    IntraScaleAggregation,
    NeighborScaleAggregation,
    PSMNetAggregation,
    StereoNetAggregation,
    stacks,
)
from aanet.models.aggregation.ganet3d import GuidanceNetwork, UpsampledRegression
from aanet.models.cost_volume import (
    ConcatenationVolume,
    CorrelationPyramid,
    CosinePyramid,
    DifferenceVolume,
    ProjectedConcatenationVolume,
)
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
from aanet.models.hourglass import deformable_window, plain_window
from aanet.models.initialization import initialize_for_matching
from aanet.models.layers import DeformConv2d
from aanet.models.network import Architecture, ContextStereoNetwork, GuidedStereoNetwork, StereoNetwork
from aanet.models.refinement import (
    ColorRefinement,
    ConvexRefinement,
    HierarchicalRefinement,
    NoRefinement,
    hourglass_refinement,
    stereodrnet_refinement,
)
from aanet.models.regression import REGRESSIONS, PeakArgmin, SoftArgmin

Initialization = Literal["paper", "matching", "pretrained"]
Builder = Callable[[int, bool], StereoNetwork]


def aanet(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """The paper's network."""
    return _on_aanet_features("aanet", max_disparity, training_heads, stacks.with_isa_and_csa)


def aanet_no_isa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """Ablation (table 1): every window is a regular 3×3 one, scales still talk to each other."""
    return _on_aanet_features("aanet_no_isa", max_disparity, training_heads, stacks.without_isa)


def aanet_no_csa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """Ablation (table 1): sampling points adapt, but every scale is aggregated alone."""
    return _on_aanet_features("aanet_no_csa", max_disparity, training_heads, stacks.without_csa)


def aanet_no_isa_csa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """Ablation (table 1): regular windows, and every scale alone."""
    return _on_aanet_features("aanet_no_isa_csa", max_disparity, training_heads, stacks.without_isa_and_csa)


def aanet_plus(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """AANet+: GA-Net's features and hourglass refinement."""
    features = PyramidFeatures(GANetFeatures(deformable_window))
    refinement = HierarchicalRefinement({2: hourglass_refinement(), 1: hourglass_refinement()})
    return _adaptive("aanet_plus", max_disparity, training_heads, features, refinement)


def ganet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """GA-Net with its 3D aggregation replaced by the adaptive one."""
    features = PyramidFeatures(GANetFeatures(deformable_window))
    refinement = HierarchicalRefinement({2: stereodrnet_refinement(), 1: stereodrnet_refinement()})
    return _adaptive("ganet_aa", max_disparity, training_heads, features, refinement)


def psmnet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """PSMNet with its 3D aggregation replaced by the adaptive one."""
    features = PyramidFeatures(PSMNetFeatures())
    refinement = HierarchicalRefinement({2: stereodrnet_refinement(), 1: stereodrnet_refinement()})
    return _adaptive("psmnet_aa", max_disparity, training_heads, features, refinement)


def gcnet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """GC-Net with its 3D aggregation replaced by the adaptive one."""
    features = PyramidFeatures(GCNetFeatures())
    refinement = HierarchicalRefinement({1: stereodrnet_refinement()})
    return _adaptive("gcnet_aa", max_disparity, training_heads, features, refinement)


def stereonet_aa(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """StereoNet at a quarter of the image with four adaptive blocks on its one scale: small and fast."""
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
    """Not in the paper: adaptive aggregation for a CPU, on pretrained features, no full-size layers."""
    features = FastFeatures()
    check_max_disparity("aanet_fast", max_disparity, features.scales[-1])
    candidates = [max_disparity // scale for scale in features.scales]
    channels = (48, 64, 128)
    blocks = (1, 1, 2)  # at each scale: more where pixels are few
    regular, sparse = GuidedIntraScaleAggregation.regular, GuidedIntraScaleAggregation.sparse
    # Adaptive sampling comes last, as in the paper, and where it costs little.
    windows = ((regular, regular, regular), (regular, regular, regular), (regular, sparse, sparse))
    stack = [
        GuidedAggregationModule(
            [
                [build(width, guide) for _ in range(count)]
                for build, width, guide, count in zip(
                    module, channels, features.out_channels, blocks, strict=True
                )
            ],
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
            blocks=2,
        ),
    )


def stereonet(max_disparity: int = 192, training_heads: bool = False) -> StereoNetwork:
    """StereoNet at an eighth of the image (Khamis et al., ECCV 2018)."""
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
    """GC-Net (Kendall et al., ICCV 2017); it has no heads that only training needs."""
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
        UpsampledRegression(max_disparity),
        NoRefinement(),
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
    """Return the candidates per scale; the coarsest must still split into the deformable groups."""
    check_max_disparity(name, max_disparity, features.scales[-1] * DeformConv2d.GROUPS)
    return [max_disparity // scale for scale in features.scales]


def check_max_disparity(name: str, max_disparity: int, multiple: int) -> None:
    """Raise a plain error naming the nearest allowed values unless `max_disparity` is a positive multiple."""
    if max_disparity > 0 and max_disparity % multiple == 0:
        return
    below = max_disparity // multiple * multiple
    nearest = f"{below} or {below + multiple}" if below > 0 else f"{multiple}"
    raise AanetError(
        f"The maximum disparity of {name} must be a positive multiple of {multiple}, but {max_disparity} was "
        f"asked for; the nearest allowed: {nearest}."
    )


@dataclass(frozen=True)
class Card:
    """What to know of a network before building it."""

    title: str
    build: Builder
    summary: str
    in_paper: bool = True


NETWORKS: dict[str, Card] = {
    "aanet": Card(
        "AANet", aanet, "the paper's network: ResNet features, adaptive aggregation at three scales"
    ),
    "aanet_plus": Card("AANet+", aanet_plus, "hourglass features and refinement: the most accurate"),
    "stereonet_aa": Card("StereoNet-AA", stereonet_aa, "one scale, half a million parameters: the fastest"),
    "aanet_fast": Card(
        "AANet-Fast",
        aanet_fast,
        "made for a CPU: pretrained features, guided aggregation, convex upsampling",
        in_paper=False,
    ),
    "gcnet_aa": Card("GC-Net-AA", gcnet_aa, "GC-Net with adaptive aggregation"),
    "psmnet_aa": Card("PSMNet-AA", psmnet_aa, "PSMNet with adaptive aggregation"),
    "ganet_aa": Card("GA-Net-AA", ganet_aa, "GA-Net with adaptive aggregation"),
    "stereonet": Card("StereoNet", stereonet, "four 3D convolutions at an eighth of the image"),
    "gcnet": Card("GC-Net", gcnet, "nineteen 3D convolutions at half of the image"),
    "psmnet": Card("PSMNet", psmnet, "three stacked 3D hourglasses"),
    "ganet": Card("GA-Net", ganet, "semi-global and local guided aggregation"),
    "aanet_no_isa": Card("AANet w/o ISA", aanet_no_isa, "ablation: regular windows"),
    "aanet_no_csa": Card("AANet w/o CSA", aanet_no_csa, "ablation: every scale alone"),
    "aanet_no_isa_csa": Card("AANet w/o ISA & CSA", aanet_no_isa_csa, "ablation: neither"),
}


def card(name: str) -> Card:
    """Look up a network by its name."""
    if name not in NETWORKS:
        raise AanetError(f"There is no network {name!r}; the networks are: {', '.join(NETWORKS)}.")
    return NETWORKS[name]


def build(
    name: str,
    max_disparity: int = 192,
    training_heads: bool = False,
    initialization: Initialization = "paper",
    regression: str | None = None,
) -> StereoNetwork:
    """Build a network with fresh weights.

    Args:
        name: One of `NETWORKS`.
        max_disparity: Disparities from 0 to below this many pixels; an error names what is allowed.
        training_heads: Also predict at the coarser scales, as intermediate supervision needs.
        initialization: "paper"; "matching" to start the aggregation of an AA network as the identity; or
            "pretrained" for features from ImageNet, where the network has such a backbone.
        regression: "soft_argmin" (equation 7), or "peak" for its highest peak; None for the network's own.
    """
    network = card(name).build(max_disparity, training_heads)
    if regression is not None:
        regress_by(network, regression)
    if initialization == "matching":
        initialize_for_matching(network)
    elif initialization == "pretrained":
        _load_imagenet(network)
    elif initialization != "paper":
        raise AanetError(
            f"The initialization must be one of {', '.join(get_args(Initialization))}; "
            f"it is {initialization!r}."
        )
    return to_channels_last(network)


def _load_imagenet(network: StereoNetwork) -> None:
    if not isinstance(network.features, FastFeatures):
        raise AanetError(f"{network.architecture.builder} has no backbone that was trained on ImageNet.")
    network.features.backbone.load_imagenet()


def regress_by(network: StereoNetwork, regression: str) -> None:
    """Let a network regress its disparity in another way than it was built with; no weight depends on it."""
    if regression == network.architecture.regression:
        return
    if regression not in REGRESSIONS:
        raise AanetError(f"The regression must be one of {', '.join(REGRESSIONS)}, not {regression!r}.")
    if not isinstance(network.regression, tuple(REGRESSIONS.values())):
        raise AanetError(f"{network.architecture.builder} has a regression of its own, which stays as it is.")
    network.regression = REGRESSIONS[regression]()
    network.architecture = replace(network.architecture, regression=regression)


def to_channels_last(network: StereoNetwork) -> StereoNetwork:
    """Lay 2D kernels out channels-last, which makes every 2D activation channels-last: faster on a CPU."""
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network
