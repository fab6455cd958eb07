"""How well a confidence tells where the errors are: sparsification curves and their area (AUSE)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS = 100  # the curve is taken after removing 0, 1, … 99 % of the pixels


@dataclass(frozen=True)
class Sparsification:
    """Mean error of what remains when the least trusted pixels go, as a share of the mean error of all.

    `by_confidence` removes by rising confidence, `oracle` by falling error, which no confidence can beat
    (Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow", 2018).
    """

    removed: NDArray[np.float64]  # [STEPS], 0 … 0.99
    by_confidence: NDArray[np.float64]  # [STEPS]
    oracle: NDArray[np.float64]  # [STEPS]

    @property
    def ause(self) -> float:
        """Area between the two curves: 0 for a perfect ranking; lower is better."""
        gap = self.by_confidence - self.oracle
        return float(((gap[1:] + gap[:-1]) / 2).sum() / STEPS)


def sparsification(error: NDArray[np.floating], confidence: NDArray[np.floating]) -> Sparsification:
    """Compute both curves from the errors and confidences of at least one pixel; NaN is no confidence."""
    errors: NDArray[np.float64] = error.ravel().astype(np.float64)
    removed = np.arange(STEPS) / STEPS
    kept = errors.size - np.floor(removed * errors.size).astype(int)
    by_confidence = errors[np.argsort(-np.nan_to_num(confidence.ravel(), nan=-np.inf), kind="stable")]
    scale = errors.mean() or 1.0  # a map without any error has flat curves at 0
    return Sparsification(removed, _means(by_confidence, kept) / scale, _means(np.sort(errors), kept) / scale)


def _means(ordered: NDArray[np.float64], kept: NDArray[np.int_]) -> NDArray[np.float64]:
    """Mean of the first k values for every k in `kept`."""
    means: NDArray[np.float64] = np.cumsum(ordered)[kept - 1] / kept
    return means
