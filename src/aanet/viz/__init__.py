"""Pictures for people: colored disparity, depth and error, a scale bar, panels and a point-cloud view."""

from aanet.viz.color import (
    KITTI_ERROR_BINS,
    KITTI_ERROR_COLORS,
    UNKNOWN,
    ColorRange,
    colorize_depth,
    colorize_disparity,
    colorize_error,
    value_range,
)
from aanet.viz.panels import panel, with_scale_bar
from aanet.viz.points import render_points

__all__ = [
    "KITTI_ERROR_BINS",
    "KITTI_ERROR_COLORS",
    "UNKNOWN",
    "ColorRange",
    "colorize_depth",
    "colorize_disparity",
    "colorize_error",
    "panel",
    "render_points",
    "value_range",
    "with_scale_bar",
]
