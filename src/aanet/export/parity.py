"""Does an exported file compute what PyTorch computes?  Asked of every file, on a real pair."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from aanet.data.motorcycle import motorcycle
from aanet.errors import AanetError
from aanet.evaluation.timing import time_interleaved
from aanet.inference.spec import Engine
from aanet.io.images import as_rgb_float
from aanet.typing import FloatMap

# Pixels by which the file may differ anywhere from PyTorch with the same weights.
MAX_DIFFERENCE = 1e-2
# Pixels by which rounding weights to float16 may move the disparity on average: little beside the 0.7 px by
# which the best networks err.  Single pixels may move further, where two matches are equally good.
MEAN_ROUNDING = 0.1
_ROUNDS = 3


@dataclass(frozen=True)
class Difference:
    """Of two disparity maps, in pixels."""

    max_px: float
    mean_px: float


@dataclass(frozen=True)
class Parity:
    """An exported file beside PyTorch.

    Attributes:
        pair: What both have matched.
        disparity: Of the file, from PyTorch with the weights as the file stores them.
        confidence: The largest difference of the confidences, in the same comparison.
        rounding: Of the file, from PyTorch with the weights before they were rounded to float16; None if they
            were not.
        torch_seconds: Median of a prediction with PyTorch, the engine of reference.
        exported_seconds: Median of a prediction with the file.
    """

    pair: str
    disparity: Difference
    confidence: float
    rounding: Difference | None
    torch_seconds: float
    exported_seconds: float

    def require(self) -> None:
        """Raise a plain error if the file does not compute what PyTorch does."""
        largest = self.disparity.max_px
        if not largest <= MAX_DIFFERENCE:  # also for NaN
            raise AanetError(
                f"The exported network differs from PyTorch by up to {largest:.3g} pixels, more than "
                f"{MAX_DIFFERENCE:g}; nothing was written."
            )
        if self.rounding is not None and not self.rounding.mean_px <= MEAN_ROUNDING:
            raise AanetError(
                f"Weights rounded to float16 move the disparity by {self.rounding.mean_px:.3g} pixels on "
                f"average, more than {MEAN_ROUNDING:g}; nothing was written: export without --half."
            )


def compare(exported: Engine, reference: Engine, size: tuple[int, int], unrounded: Engine) -> Parity:
    """Match the Motorcycle pair at a height and width that the network takes.

    Args:
        exported: The file.
        reference: PyTorch with the weights as the file stores them.
        size: Height and width.
        unrounded: PyTorch with the weights as they were; the reference itself if they were not rounded.
    """
    left, right = _motorcycle_pair(size)
    answers: dict[str, tuple[FloatMap, FloatMap]] = {}

    def run(name: str, engine: Engine) -> None:
        answers[name] = engine(left, right)

    times = time_interleaved(
        {"torch": lambda: run("torch", unrounded), "exported": lambda: run("exported", exported)}, _ROUNDS
    )
    run("reference", reference)
    disparity, confidence = answers["exported"]
    return Parity(
        pair=f"Motorcycle, {size[0]}×{size[1]}",
        disparity=_difference(disparity, answers["reference"][0]),
        confidence=float(np.abs(confidence - answers["reference"][1]).max()),
        rounding=None if unrounded is reference else _difference(disparity, answers["torch"][0]),
        torch_seconds=times["torch"].median,
        exported_seconds=times["exported"].median,
    )


def _difference(disparity: FloatMap, truth: FloatMap) -> Difference:
    absolute = np.abs(disparity - truth)
    return Difference(float(absolute.max()), float(absolute.mean()))


def _motorcycle_pair(size: tuple[int, int]) -> tuple[FloatMap, FloatMap]:
    """Both images, [1, 3, H, W] in 0 … 1, resized."""
    sample = motorcycle()
    left, right = (
        cv2.resize(as_rgb_float(image), size[::-1], interpolation=cv2.INTER_AREA).transpose(2, 0, 1)[None]
        for image in (sample.left, sample.right)
    )
    return left, right
