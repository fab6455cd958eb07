"""The one real pair with ground truth that is always at hand: scikit-image's wheel carries it."""

from __future__ import annotations

import numpy as np

from aanet.data.sample import StereoSample
from aanet.geometry.camera import StereoCamera

# As scikit-image documents the calibration of its downsampled images.
MOTORCYCLE_CAMERA = StereoCamera(
    fx=994.978, cx=311.193, cy=254.877, baseline_m=0.193001, width=741, height=500, cx_right=311.193 + 31.086
)


def motorcycle() -> StereoSample:
    """Middlebury 2014 Motorcycle at a quarter of its size (Scharstein et al., GCPR 2014)."""
    from skimage.data import stereo_motorcycle

    left, right, disparity = stereo_motorcycle()
    valid = np.isfinite(disparity)
    return StereoSample("Motorcycle", left, right, np.where(valid, disparity, 0).astype(np.float32), valid)
