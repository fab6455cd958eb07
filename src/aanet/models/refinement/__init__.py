"""Coarse disparity → full disparity, guided by the images."""

from aanet.models.refinement.hierarchical import HierarchicalRefinement, NoRefinement
from aanet.models.refinement.residual import (
    ColourRefinement,
    WarpedRefinement,
    hourglass_refinement,
    stereodrnet_refinement,
)

__all__ = [
    "ColourRefinement",
    "HierarchicalRefinement",
    "NoRefinement",
    "WarpedRefinement",
    "hourglass_refinement",
    "stereodrnet_refinement",
]
