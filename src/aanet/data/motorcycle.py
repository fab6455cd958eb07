"""A real pair with ground truth that is part of scikit-image, so that no download is needed."""

from __future__ import annotations

import numpy as np

from aanet.data.sample import StereoSample
from aanet.geometry.camera import StereoCamera

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
