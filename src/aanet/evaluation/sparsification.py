"""Sparsification curves and the area between them (AUSE), which measure how well confidence ranks errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS = 100  # at 0, 1, … 99 % of removed pixels


@dataclass(frozen=True)
class Sparsification:
    """Mean error of the remaining pixels as pixels are removed, relative to the mean error of all pixels.

    `by_confidence` removes the least confident pixels first, `oracle` those with the largest errors
    (Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow", 2018).
    """

    by_confidence: NDArray[np.float64]  # [STEPS]
    oracle: NDArray[np.float64]  # [STEPS]

    @property
    def ause(self) -> float:
        """Area between the two curves: 0 for a perfect ranking; lower is better."""
        gap = self.by_confidence - self.oracle
        return float(((gap[1:] + gap[:-1]) / 2).sum() / STEPS)


def sparsification(error: NDArray[np.floating], confidence: NDArray[np.floating]) -> Sparsification:
    """Compute both curves for at least one pixel; a NaN confidence is the lowest."""
    errors: NDArray[np.float64] = error.ravel().astype(np.float64)
    removed = np.arange(STEPS) / STEPS
    kept = errors.size - np.floor(removed * errors.size).astype(int)
    by_confidence = errors[np.argsort(-np.nan_to_num(confidence.ravel(), nan=-np.inf), kind="stable")]
    scale = errors.mean() or 1.0  # without any error both curves are 0
    return Sparsification(_means(by_confidence, kept) / scale, _means(np.sort(errors), kept) / scale)


def _means(ordered: NDArray[np.float64], kept: NDArray[np.int_]) -> NDArray[np.float64]:
    """Mean of the first k values for every k in `kept`."""
    means: NDArray[np.float64] = np.cumsum(ordered)[kept - 1] / kept
    return means
