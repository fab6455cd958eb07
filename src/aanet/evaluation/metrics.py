"""Error metrics of disparity maps, computed from sums over pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from aanet.data.datasets.card import Average
from aanet.inference.holes import ends_of_holes
from aanet.typing import FloatMap, Mask

THRESHOLDS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # px of error, for the percentages of bad pixels
D1_PIXELS, D1_SHARE = 3.0, 0.05  # KITTI 2015: an outlier has an error above 3 px and 5 %


@dataclass(frozen=True)
class ErrorSums:
    """Sums over the scored pixels of a region, of one image or of many."""

    pixels: int = 0
    predicted: int = 0  # pixels for which the matcher gave a disparity
    absolute: float = 0.0  # sum of |error| in px
    above: tuple[int, ...] = (0,) * len(THRESHOLDS)  # pixels with an error above each threshold
    outliers: int = 0  # D1

    def __add__(self, other: ErrorSums) -> ErrorSums:
        return ErrorSums(
            self.pixels + other.pixels,
            self.predicted + other.predicted,
            self.absolute + other.absolute,
            tuple(a + b for a, b in zip(self.above, other.above, strict=True)),
            self.outliers + other.outliers,
        )

    @property
    def epe(self) -> float:
        """End-point error: the mean of |error| in px; KITTI 2012 calls it Avg."""
        return self._share(self.absolute)

    @property
    def d1(self) -> float:
        """Percentage of pixels with an error above 3 px and 5 % of the true disparity."""
        return 100 * self._share(self.outliers)

    @property
    def density(self) -> float:
        """Percentage of pixels for which the matcher gave a disparity."""
        return 100 * self._share(self.predicted)

    def bad(self, threshold: float) -> float:
        """Percentage of pixels with an error above the threshold; KITTI 2012 calls it Out, with 3 px."""
        return 100 * self._share(self.above[THRESHOLDS.index(threshold)])

    def _share(self, value: float) -> float:
        return value / self.pixels if self.pixels else float("nan")


def error_sums(predicted: FloatMap, truth: FloatMap, scored: Mask, given: Mask) -> ErrorSums:
    """Compare two disparity maps on the scored pixels; `given` masks the matcher's own predictions."""
    error = np.abs(predicted[scored].astype(np.float64) - truth[scored])
    return ErrorSums(
        pixels=error.size,
        predicted=int(np.count_nonzero(given & scored)),
        absolute=float(error.sum()),
        above=tuple(int(np.count_nonzero(error > threshold)) for threshold in THRESHOLDS),
        outliers=int(np.count_nonzero((error > D1_PIXELS) & (error > D1_SHARE * truth[scored]))),
    )


def average(images: Iterable[ErrorSums], statistic: Callable[[ErrorSums], float], over: Average) -> float:
    """Average a statistic over images with equal weights, or over the pooled pixels of all images.

    Images without scored pixels are ignored; NaN if there are no others.
    """
    counted = [sums for sums in images if sums.pixels]
    if not counted:
        return float("nan")
    if over == "pixels":
        return statistic(sum(counted, start=ErrorSums()))
    return sum(statistic(sums) for sums in counted) / len(counted)


def fill_holes(disparity: FloatMap) -> tuple[FloatMap, Mask]:
    """Return a dense map and the mask of the given pixels, as in KITTI's and Middlebury's evaluations.

    A hole (not finite, or negative) is filled with the smaller of its left and right neighbors in the row,
    because unmatched pixels are usually background next to an edge.  An empty row is a copy of the row above,
    or of the first non-empty row at the top; an empty map becomes 0.
    """
    given = np.isfinite(disparity) & (disparity >= 0)
    if given.all():
        return disparity, given
    ends = ends_of_holes(disparity, given)
    filled = np.where(given, disparity, np.minimum(ends.left, ends.right))
    rows = np.flatnonzero(given.any(axis=1))
    if not rows.size:
        return np.zeros_like(disparity), given
    source = rows[np.maximum(np.searchsorted(rows, np.arange(len(disparity)), side="right") - 1, 0)]
    return filled[source].astype(np.float32), given


@dataclass(frozen=True)
class Metric:
    """A statistic of the errors in a region, with its label."""

    label: str
    region: str
    statistic: Callable[[ErrorSums], float]


def _bad(threshold: float) -> Callable[[ErrorSums], float]:
    return lambda sums: sums.bad(threshold)


def _epe(sums: ErrorSums) -> float:
    return sums.epe


def _d1(sums: ErrorSums) -> float:
    return sums.d1


def _density(sums: ErrorSums) -> float:
    return sums.density


METRICS: dict[str, Metric] = {
    "epe": Metric("EPE", "all", _epe),
    "bad0.5": Metric("> 0.5 px", "all", _bad(0.5)),
    "bad1": Metric("> 1 px", "all", _bad(1.0)),
    "bad2": Metric("> 2 px", "all", _bad(2.0)),
    "bad3": Metric("> 3 px", "all", _bad(3.0)),
    "bad4": Metric("> 4 px", "all", _bad(4.0)),
    "epe_noc": Metric("EPE noc", "visible", _epe),
    "bad1_noc": Metric("> 1 px noc", "visible", _bad(1.0)),
    "bad2_noc": Metric("> 2 px noc", "visible", _bad(2.0)),
    "d1_all": Metric("D1-all", "all", _d1),
    "d1_bg": Metric("D1-bg", "background", _d1),
    "d1_fg": Metric("D1-fg", "foreground", _d1),
    "d1_noc": Metric("D1-noc", "visible", _d1),
    "out_noc": Metric("Out-Noc", "visible", _bad(3.0)),
    "out_all": Metric("Out-All", "all", _bad(3.0)),
    "avg_noc": Metric("Avg-Noc", "visible", _epe),
    "avg_all": Metric("Avg-All", "all", _epe),
    "density": Metric("density", "all", _density),
}
