"""OpenCV's semi-global matching as an engine, so that users see what a network buys them."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.engines.semi_global import SemiGlobalMatcher
from aanet.inference import memory
from aanet.inference.spec import Maps, NetworkSpec
from aanet.typing import FloatMap


class SgbmEngine:
    """Needs no weights; images of any size."""

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
        return np.stack([disparity for disparity, _ in maps]), np.stack([sure for _, sure in maps])

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()
