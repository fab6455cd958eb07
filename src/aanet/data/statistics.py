"""Statistics of a dataset's ground truth: range, density and occlusion."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aanet.data.datasets import PairSource
from aanet.errors import InputError
from aanet.io.images import PathLike, decode_image, write_image

BIN_WIDTH = 1.0  # px
HISTOGRAM_ROWS, HISTOGRAM_WIDTH = 24, 50  # at most, in characters


@dataclass(frozen=True)
class DisparityStatistics:
    """A disparity histogram with bins of 1 px, and summary statistics."""

    name: str
    pairs: int
    sizes: dict[str, int]  # "540×960": how many pairs
    counts: NDArray[np.int64]  # counts[d]: pixels with d <= disparity < d + 1
    known: float  # share of the pixels that have ground truth
    occluded: float | None  # share of the known pixels that are occluded in the right view
    largest: float

    @property
    def mean(self) -> float:
        """Mean disparity, computed from the histogram."""
        return float((np.arange(self.counts.size) + BIN_WIDTH / 2) @ self.counts / self.counts.sum())

    def percentile(self, percent: float) -> float:
        """Return the upper edge of the bin that contains the percentile."""
        cumulated = np.cumsum(self.counts)
        return float(np.searchsorted(cumulated, percent / 100 * cumulated[-1]) + 1)

    def beyond(self, disparity: int) -> float:
        """Return the percentage of pixels at or above a disparity."""
        return float(100 * self.counts[disparity:].sum() / self.counts.sum())

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        return {
            "dataset": self.name,
            "pairs": self.pairs,
            "sizes": self.sizes,
            "mean_px": self.mean,
            "largest_px": self.largest,
            "percentiles_px": {str(p): self.percentile(p) for p in (1, 5, 50, 95, 99)},
            "percent_beyond_192_px": self.beyond(192),
            "known": self.known,
            "occluded": self.occluded,
            "histogram": self.counts.tolist(),
        }


def disparity_statistics(dataset: PairSource, indices: Iterable[int]) -> DisparityStatistics:
    """Compute the statistics of the given pairs."""
    counts = np.zeros(0, np.int64)
    sizes: dict[str, int] = {}
    pixels = with_mask = occluded = pairs = 0
    largest = 0.0
    for index in indices:
        sample = dataset[index]
        if sample.disparity is None or sample.valid is None:
            raise InputError(f"{sample.name} has no ground truth.")
        known = sample.disparity[sample.valid]
        found = np.bincount(np.floor(known / BIN_WIDTH).astype(np.int64), minlength=counts.size)
        counts = found + np.pad(counts, (0, found.size - counts.size))
        size = f"{sample.left.shape[0]}×{sample.left.shape[1]}"
        sizes[size] = sizes.get(size, 0) + 1
        pixels += sample.valid.size
        pairs += 1
        largest = max(largest, float(known.max(initial=0)))
        if sample.visible is not None:
            with_mask += known.size
            occluded += int(np.count_nonzero(sample.valid & ~sample.visible))
    if not counts.sum():
        raise InputError(f"No pixel of {dataset.name} has ground truth.")
    share = occluded / with_mask if with_mask else None
    return DisparityStatistics(
        dataset.name, pairs, sizes, counts, float(counts.sum() / pixels), share, largest
    )


def histogram_lines(statistics: DisparityStatistics) -> list[str]:
    """Return the histogram as text, one line per range of disparities."""
    step = max(1, -(-statistics.counts.size // HISTOGRAM_ROWS))
    padded = np.pad(statistics.counts, (0, -statistics.counts.size % step))
    totals = padded.reshape(-1, step).sum(axis=1)
    percent = 100 * totals / totals.sum()
    bars = ["█" * round(HISTOGRAM_WIDTH * value / percent.max()) for value in percent]
    return [
        f"{row * step:4d} – {(row + 1) * step:<4d} {value:6.2f} % {bar}".rstrip()
        for row, (value, bar) in enumerate(zip(percent, bars, strict=True))
    ]


def draw_histogram(path: PathLike, statistics: DisparityStatistics) -> None:
    """Write the histogram as an image."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    percent = 100 * statistics.counts / statistics.counts.sum()
    axes.stairs(percent, np.arange(percent.size + 1) * BIN_WIDTH, fill=True, color="#4575b4")
    axes.set_xlim(0, percent.size * BIN_WIDTH)
    axes.set_xlabel("disparity in px")
    axes.set_ylabel("% of known pixels per px")
    axes.set_title(
        f"{statistics.name}: {statistics.pairs} pairs, {100 * statistics.known:.0f} % of pixels known"
    )
    if percent.size > 192:
        axes.axvline(192, color="#d73027", linewidth=1)
        axes.annotate(
            f"{statistics.beyond(192):.2f} % beyond 192 px", (192, axes.get_ylim()[1] * 0.9), color="#d73027"
        )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    write_image(path, decode_image(drawn.getvalue(), "the histogram")[:, :, :3])
