"""A filter along time against the flicker of videos."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.errors import InputError
from aanet.typing import FloatMap

AVERAGED, REPLACED = 0.5, 0.75  # mean change of the surroundings in pixels, up to and from which they are
_WINDOW = 3  # side of the surroundings


class TemporalFilter:
    """The exponential average of the disparities of a static or slowly changing scene.

    Each pixel becomes `weight · new + (1 − weight) · old`. Noise differs from pixel to pixel, whereas
    something that moves changes whole regions: where the mean change of 3×3 pixels is above `REPLACED`, the
    new disparity is taken as it is, and from `AVERAGED` on its weight increases linearly. Pixels are not
    tracked: with a moving camera there is little to average.
    """

    def __init__(self, weight: float) -> None:
        """Start without a history.

        Args:
            weight: Weight of the new frame, above 0 and at most 1; 0.4 reduces the standard deviation of
                independent noise to a half, and 1 changes nothing.
        """
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not (number and 0 < weight <= 1):
            raise InputError(f"The temporal weight must be above 0 and at most 1; got {str(weight)[:30]}.")
        self.weight = float(weight)
        self._average: FloatMap | None = None

    def __call__(self, disparity: FloatMap) -> FloatMap:
        """Return the average with the next frame, [H, W]; unknown where the frame is."""
        old = self._average
        if old is None or old.shape != disparity.shape:
            self._average = disparity.copy()
            return disparity
        change = disparity - old
        comparable = np.isfinite(change)
        change = np.where(comparable, change, np.float32(0))
        around = np.abs(cv2.blur(change, (_WINDOW, _WINDOW))).astype(np.float32)
        moved = np.clip((around - AVERAGED) / (REPLACED - AVERAGED), 0, 1)
        weight = self.weight + (1 - self.weight) * moved
        average = np.where(comparable, old + weight * change, disparity).astype(np.float32)
        self._average = average.copy()  # the caller may change what it gets
        return average
