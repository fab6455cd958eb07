"""Operators for stereo networks that PyTorch lacks: plain tensors in and out, any device, exportable."""

from aanet.ops.correlation import concatenation_volume, correlation_volume, difference_volume
from aanet.ops.deform_conv import deform_conv2d
from aanet.ops.warp import resize_disparity, warp_by_disparity

__all__ = [
    "concatenation_volume",
    "correlation_volume",
    "deform_conv2d",
    "difference_volume",
    "resize_disparity",
    "warp_by_disparity",
]
