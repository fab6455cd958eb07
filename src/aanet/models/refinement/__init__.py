"""Coarse disparity → disparity at full resolution, guided by the images."""

from aanet.models.refinement.convex import ConvexRefinement, convex_upsample
from aanet.models.refinement.hierarchical import HierarchicalRefinement, NoRefinement
from aanet.models.refinement.residual import (
    ColorRefinement,
    WarpedRefinement,
    hourglass_refinement,
    stereodrnet_refinement,
)

__all__ = [
    "ColorRefinement",
    "ConvexRefinement",
    "HierarchicalRefinement",
    "NoRefinement",
    "WarpedRefinement",
    "convex_upsample",
    "hourglass_refinement",
    "stereodrnet_refinement",
]
