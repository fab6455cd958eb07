"""OpenCV's semi-global matching as an engine, for comparison with the networks."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.engines.semi_global import SemiGlobalMatcher
from aanet.inference import memory
from aanet.inference.spec import Maps, NetworkSpec
from aanet.typing import FloatMap


class SgbmEngine:
    """Semi-global matching; needs no weights and takes images of any size."""

    name = "opencv"

    def __init__(self, max_disparity: int = 192) -> None:
        self.spec = NetworkSpec("sgbm", max_disparity, bytes_per_pixel=150, correlates=False)
        self.description = f"OpenCV {cv2.__version__}, SGBM"
        self._match = SemiGlobalMatcher(max_disparity)

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        maps = []
        for pair in zip(left, right, strict=True):
            rgb = [np.rint(image.transpose(1, 2, 0) * 255).astype(np.uint8) for image in pair]
            disparity, confidence, _ = self._match(rgb[0], rgb[1])
            maps.append((disparity, confidence))
        disparities, confidences = zip(*maps, strict=True)
        return np.stack(disparities), np.stack(confidences)

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()
