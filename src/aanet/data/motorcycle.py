"""A real pair with ground truth that is part of scikit-image, so that no download is needed."""

from __future__ import annotations

import numpy as np

from aanet.data.sample import StereoSample
from aanet.geometry.camera import StereoCamera
from aanet.geometry.rectification import Calibration
from aanet.typing import Image

# The calibration in scikit-image's documentation, for the downsampled images.
MOTORCYCLE_CAMERA = StereoCamera(
    fx=994.978, cx=311.193, cy=254.877, baseline_m=0.193001, width=741, height=500, cx_right=311.193 + 31.086
)


def motorcycle() -> StereoSample:
    """Middlebury 2014 Motorcycle at quarter size (Scharstein et al., GCPR 2014)."""
    from skimage.data import stereo_motorcycle

    left, right, disparity = stereo_motorcycle()
    valid = np.isfinite(disparity)
    return StereoSample("Motorcycle", left, right, np.where(valid, disparity, 0).astype(np.float32), valid)


def sample_pair() -> tuple[Image, Image, Calibration]:
    """Return a real pair to try things with: left and right image, uint8 RGB [500, 741, 3], and calibration.

    It is the Motorcycle pair of Middlebury 2014, which comes with scikit-image.

    Example:
        left, right, calibration = aanet.sample_pair()
        result = aanet.StereoMatcher()(left, right, calibration=calibration)
    """
    pair = motorcycle()
    return pair.left, pair.right, Calibration(MOTORCYCLE_CAMERA)
