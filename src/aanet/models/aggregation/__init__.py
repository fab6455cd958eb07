"""Matching cost → aggregated scores: adaptive aggregation, and the 3D networks it replaces."""

from aanet.models.aggregation.adaptive import (
    AdaptiveAggregation,
    AdaptiveAggregationModule,
    CrossScaleAggregation,
    IntraScaleAggregation,
)
from aanet.models.aggregation.ganet3d import GANetAggregation
from aanet.models.aggregation.gcnet3d import GCNetAggregation
from aanet.models.aggregation.guided import (
    GlobalAggregation,
    GuidedAggregation,
    GuidedAggregationModule,
    GuidedIntraScaleAggregation,
    NeighborScaleAggregation,
)
from aanet.models.aggregation.psmnet3d import PSMNetAggregation
from aanet.models.aggregation.stereonet3d import StereoNetAggregation

__all__ = [
    "AdaptiveAggregation",
    "AdaptiveAggregationModule",
    "CrossScaleAggregation",
    "GANetAggregation",
    "GCNetAggregation",
    "GlobalAggregation",
    "GuidedAggregation",
    "GuidedAggregationModule",
    "GuidedIntraScaleAggregation",
    "IntraScaleAggregation",
    "NeighborScaleAggregation",
    "PSMNetAggregation",
    "StereoNetAggregation",
]
