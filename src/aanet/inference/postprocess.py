"""How a matcher serves weights best: found by trying them, and no part of the network itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import cv2
import numpy as np

from aanet.errors import AanetError
from aanet.inference.holes import fill_smoothly
from aanet.typing import FloatMap

LARGEST_ENLARGEMENT = 1.5  # of small images
STEEPEST = (
    4.0  # pixels of disparity within 3×3: a surface that both cameras see changes by less than 1 a pixel
)


@dataclass(frozen=True)
class Handling:
    """What weights ask of a matcher; nothing unless they say so.

    Attributes:
        enlarge_to: Width in pixels at which smaller images are better matched; 0 if they are not.
        cut_edges: Whether `cut_edges` makes the disparity better.
        extend_border: Whether `extend_past_view` is better than what the network predicts there.
    """

    enlarge_to: int = 0
    cut_edges: bool = False
    extend_border: bool = False

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], source: str) -> Handling:
        """Read what weights ask for out of the facts that their file gives; `source` names it in an error."""
        asked = {key: facts[key] for key in asdict(cls()) if key in facts}
        for key, value in asked.items():
            kind = type(getattr(cls, key))
            if type(value) is not kind:
                wanted = "true or false" if kind is bool else "a whole number"
                raise AanetError(f"{source} gives {value!r} for {key}; it must be {wanted}.")
        return cls(**asked)

    def scale_for(self, width: int) -> float:
        """The scale at which to match images of this width: 1, or more for small ones.

        A network that matches at a third of the image cannot see what is thinner than a few pixels.
        """
        return min(max(self.enlarge_to / width, 1.0), LARGEST_ENLARGEMENT)

    def finish(self, disparity: FloatMap) -> FloatMap:
        """Give a predicted disparity [B, H, W] its last touches."""
        if self.cut_edges:
            disparity = np.stack([cut_edges(each) for each in disparity])
        if self.extend_border:
            disparity = np.stack([extend_past_view(each) for each in disparity])
        return disparity


def cut_edges(disparity: FloatMap) -> FloatMap:
    """Give every pixel of a blurred edge to one of the two surfaces.

    Disparities between two surfaces belong to neither; as points they fly between them.  Where a window of
    3×3 spans more than any one surface could, its middle takes the smallest or the largest value in it,
    whichever is nearer (toggle mapping, Kramer and Bruckner 1975).  A median before that removes specks.

    Args:
        disparity: [H, W] in pixels.
    """
    median = cv2.medianBlur(np.ascontiguousarray(disparity, np.float32), 3)
    window = np.ones((3, 3), np.uint8)
    low, high = cv2.erode(median, window), cv2.dilate(median, window)
    nearer = np.where(median - low > high - median, high, low)
    return np.where(high - low > STEEPEST, nearer, median).astype(np.float32, copy=False)


def extend_past_view(disparity: FloatMap) -> FloatMap:
    """Continue surfaces into what the right camera does not see: past the left end of its image.

    By their disparity, matches of those pixels lie outside of the right image, so nothing was compared there
    and a network guesses.  They are filled as holes, from the nearest pixels in the row that have a match.

    Args:
        disparity: [H, W] in pixels; returned as it is if nothing in it has a match.
    """
    matched = disparity <= np.arange(disparity.shape[1])
    return fill_smoothly(np.where(matched, disparity, np.float32(np.nan))) if matched.any() else disparity
