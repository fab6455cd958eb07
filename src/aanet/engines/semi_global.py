"""OpenCV's semi-global matching with tuned parameters and filled holes, as a baseline for the networks."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.inference.consistency import Matched, complete
from aanet.typing import FloatMap, Image

_BLOCK = 3


class SemiGlobalMatcher:
    """Dense disparity, confidence and consistency of a rectified pair (Hirschmüller, PAMI 2008).

    The parameters were chosen on Middlebury, KITTI 2015 and the Motorcycle pair: gray images, blocks of 3
    pixels, three paths. Color, larger blocks and more paths took more time and were not more accurate.
    """

    def __init__(self, max_disparity: int = 192) -> None:
        if max_disparity < 1:
            raise InputError(f"The maximum disparity must be at least 1 pixel; got {max_disparity}.")
        self.max_disparity = max_disparity
        self._range = -(-max_disparity // 16) * 16  # OpenCV searches multiples of 16
        self._matcher = cv2.StereoSGBM.create(
            minDisparity=0,
            numDisparities=self._range,
            blockSize=_BLOCK,
            P1=8 * _BLOCK**2,
            P2=32 * _BLOCK**2,
            disp12MaxDiff=-1,  # consistency is checked below against a right map that is matched separately
            preFilterCap=63,
            uniquenessRatio=5,
            speckleWindowSize=100,
            speckleRange=2,
            mode=cv2.STEREO_SGBM_MODE_SGBM_3WAY,
        )

    def __call__(self, left: Image, right: Image) -> Matched:
        """Match a pair of RGB images [H, W, 3]."""
        left_gray, right_gray = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (left, right))
        disparity = self._match(left_gray, right_gray)
        mirrored = self._match(np.fliplr(right_gray), np.fliplr(left_gray))
        return complete(disparity, np.fliplr(mirrored), self.max_disparity)

    def _match(self, left: NDArray[np.generic], right: NDArray[np.generic]) -> FloatMap:
        """Return the raw disparity, NaN where OpenCV finds none."""
        # OpenCV does not match a strip at the left as wide as the search range; padding takes its place.
        padded = [
            cv2.copyMakeBorder(image.astype(np.uint8), 0, 0, self._range, 0, cv2.BORDER_REPLICATE)
            for image in (left, right)
        ]
        disparity = self._matcher.compute(*padded)[:, self._range :].astype(np.float32)
        disparity /= 16
        disparity[disparity < 0] = np.nan
        return disparity
