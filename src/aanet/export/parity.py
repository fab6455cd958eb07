"""Comparison of an exported file with PyTorch on a real pair."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from aanet.data.motorcycle import motorcycle
from aanet.errors import UnsupportedError
from aanet.evaluation.timing import time_interleaved
from aanet.inference.spec import Engine
from aanet.io.images import as_rgb_float
from aanet.typing import FloatMap

# Maximum difference in pixels between the file and PyTorch with the same weights.
MAX_DIFFERENCE = 1e-2
# Mean change of the disparity in pixels that rounding weights to float16 may cause: small compared with the
# EPE of the best networks, 0.7 px. Single pixels may change more, where two matches are equally good.
MEAN_ROUNDING = 0.1
_ROUNDS = 3


@dataclass(frozen=True)
class Difference:
    """The difference of two disparity maps in pixels."""

    max_px: float
    mean_px: float


@dataclass(frozen=True)
class Parity:
    """The comparison of an exported file with PyTorch.

    Attributes:
        pair: The pair that both matched.
        disparity: Difference of the disparities, with the weights as stored in the file.
        confidence: Largest difference of the confidences, with the weights as stored in the file.
        rounding: Difference from PyTorch with the weights before rounding to float16; None if not rounded.
        torch_seconds: Median time of a prediction with PyTorch.
        exported_seconds: Median time of a prediction with the file.
    """

    pair: str
    disparity: Difference
    confidence: float
    rounding: Difference | None
    torch_seconds: float
    exported_seconds: float

    def require(self) -> None:
        """Raise an error if the differences are too large."""
        largest = self.disparity.max_px
        if not largest <= MAX_DIFFERENCE:  # also for NaN
            raise UnsupportedError(
                f"The exported network differs from PyTorch by up to {largest:.3g} pixels, more than "
                f"{MAX_DIFFERENCE:g}; nothing was written."
            )
        if self.rounding is not None and not self.rounding.mean_px <= MEAN_ROUNDING:
            raise UnsupportedError(
                f"Rounding weights to float16 changes the disparity by {self.rounding.mean_px:.3g} pixels on "
                f"average, more than {MEAN_ROUNDING:g}; nothing was written; export without --half."
            )


def compare(exported: Engine, reference: Engine, size: tuple[int, int], unrounded: Engine) -> Parity:
    """Compare engines on the Motorcycle pair.

    Args:
        exported: The engine of the exported file.
        reference: PyTorch with the weights as stored in the file.
        size: Height and width to which the pair is resized; the network must accept them.
        unrounded: PyTorch with the original weights; `reference` itself if they were not rounded.
    """
    left, right = _motorcycle_pair(size)
    outputs: dict[str, tuple[FloatMap, FloatMap]] = {}

    def run(name: str, engine: Engine) -> None:
        outputs[name] = engine(left, right)

    times = time_interleaved(
        {"torch": lambda: run("torch", unrounded), "exported": lambda: run("exported", exported)}, _ROUNDS
    )
    run("reference", reference)
    disparity, confidence = outputs["exported"]
    return Parity(
        pair=f"Motorcycle, {size[0]}×{size[1]}",
        disparity=_difference(disparity, outputs["reference"][0]),
        confidence=float(np.abs(confidence - outputs["reference"][1]).max()),
        rounding=None if unrounded is reference else _difference(disparity, outputs["torch"][0]),
        torch_seconds=times["torch"].median,
        exported_seconds=times["exported"].median,
    )


def _difference(disparity: FloatMap, truth: FloatMap) -> Difference:
    absolute = np.abs(disparity - truth)
    return Difference(float(absolute.max()), float(absolute.mean()))


def _motorcycle_pair(size: tuple[int, int]) -> tuple[FloatMap, FloatMap]:
    """Return both images as [1, 3, H, W] in 0 … 1, resized."""
    sample = motorcycle()
    left, right = (
        cv2.resize(as_rgb_float(image), size[::-1], interpolation=cv2.INTER_AREA).transpose(2, 0, 1)[None]
        for image in (sample.left, sample.right)
    )
    return np.asarray(left, np.float32), np.asarray(right, np.float32)
