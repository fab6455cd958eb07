"""Regions of the left image by which errors are reported.

Edges and textureless areas are defined as by Scharstein and Szeliski (2002, section 5.1).
"""

from __future__ import annotations

import cv2
import numpy as np

from aanet.data.sample import StereoSample
from aanet.typing import FloatMap, Image, Mask

EDGE_JUMP = 2.0  # px: larger differences between neighbors are discontinuities
EDGE_WIDTH = 9  # px: width of the region around a discontinuity
TEXTURE_WIDTH = 3  # px: window over which the squared gradient is averaged
TEXTURE_THRESHOLD = 4.0  # gray levels²: windows below it are textureless


def near_edges(disparity: FloatMap, valid: Mask, width: int = EDGE_WIDTH) -> Mask:
    """Pixels within `width` // 2 of neighbors whose known disparities differ by more than 2 px."""
    jumps = np.zeros(disparity.shape, np.uint8)
    across = (np.abs(np.diff(disparity, axis=1)) > EDGE_JUMP) & valid[:, 1:] & valid[:, :-1]
    down = (np.abs(np.diff(disparity, axis=0)) > EDGE_JUMP) & valid[1:] & valid[:-1]
    jumps[:, 1:] |= across
    jumps[:, :-1] |= across
    jumps[1:] |= down
    jumps[:-1] |= down
    return cv2.dilate(jumps, np.ones((width, width), np.uint8)).astype(bool)


def textureless(image: Image) -> Mask:
    """Pixels whose squared horizontal gradient of gray, averaged over 3×3, is below 4."""
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    gradient = np.diff(gray, axis=1, append=gray[:, -1:])
    window = (TEXTURE_WIDTH, TEXTURE_WIDTH)
    energy = cv2.blur(gradient * gradient, window, borderType=cv2.BORDER_REFLECT)
    return np.less(energy, TEXTURE_THRESHOLD).astype(bool)


def region_masks(sample: StereoSample, scored: Mask) -> dict[str, Mask]:
    """Return the scored pixels of every region that the sample's ground truth defines."""
    if sample.disparity is None or sample.valid is None:
        return {}
    masks = {
        "all": scored,
        "edges": scored & near_edges(sample.disparity, sample.valid),
        "textureless": scored & textureless(sample.left),
    }
    if sample.visible is not None:
        masks["visible"] = scored & sample.visible
        masks["occluded"] = scored & ~sample.visible
    if sample.foreground is not None:
        masks["foreground"] = scored & sample.foreground
        masks["background"] = scored & ~sample.foreground
    return masks
