"""Matchers without learning as engines, for comparison with the networks, and the table that lists them.

Everything that names such matchers uses `CLASSICAL`.  Libraries are imported only when one is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aanet.inference import memory
from aanet.inference.spec import Maps, NetworkSpec
from aanet.typing import FloatMap, Image

if TYPE_CHECKING:
    from aanet.inference.consistency import Matched

DEFAULT_RANGE = 192  # pixels


@dataclass(frozen=True)
class ClassicalCard:
    """A matcher that needs no weights.

    Attributes:
        title: Its name for people.
        bytes_per_pixel: Peak memory of a prediction with 192 disparities.
        build: Makes it for a maximum disparity in pixels; it matches RGB images [H, W, 3].
    """

    title: str
    bytes_per_pixel: int
    build: Callable[[int], Callable[[Image, Image], Matched]]


def _semi_global(max_disparity: int) -> Callable[[Image, Image], Matched]:
    from aanet.engines.semi_global import SemiGlobalMatcher

    return SemiGlobalMatcher(max_disparity)


def _cross_scale(max_disparity: int) -> Callable[[Image, Image], Matched]:
    from aanet.engines.cross_scale import CrossScaleMatcher

    return CrossScaleMatcher(max_disparity)


CLASSICAL: dict[str, ClassicalCard] = {
    "sgbm": ClassicalCard("SGBM", 150, _semi_global),
    "cross-scale": ClassicalCard("cross-scale aggregation", 2600, _cross_scale),
}


class ClassicalEngine:
    """Runs a matcher of the table; it takes images of any size."""

    name = "opencv"

    def __init__(self, name: str, max_disparity: int | None = None) -> None:
        """Make the matcher of this name; it searches 192 pixels unless told otherwise."""
        import cv2

        card = CLASSICAL[name]
        reach = DEFAULT_RANGE if max_disparity is None else max_disparity
        self.spec = NetworkSpec(name, reach, card.bytes_per_pixel, correlates=False)
        self.description = f"OpenCV {cv2.__version__}, {card.title}"
        self._match = card.build(reach)

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
