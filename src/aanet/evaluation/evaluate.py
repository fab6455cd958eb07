"""Evaluation of a matcher on a dataset."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aanet.data.datasets import PairSource
from aanet.data.datasets.card import Average
from aanet.data.datasets.card import Protocol as ScoringProtocol
from aanet.data.sample import StereoSample
from aanet.errors import AanetError
from aanet.evaluation import paper
from aanet.evaluation.metrics import METRICS, ErrorSums, average, error_sums, fill_holes
from aanet.evaluation.protocols import describe, protocol_of
from aanet.evaluation.regions import region_masks
from aanet.evaluation.sparsification import sparsification
from aanet.typing import FloatMap, Image, Mask

REGIONS = ("all", "visible", "occluded", "foreground", "background", "edges", "textureless")


class Matched(Protocol):
    """The result of a matcher."""

    @property
    def disparity(self) -> FloatMap:
        """Float32 [H, W] in pixels; NaN where unknown."""

    @property
    def confidence(self) -> FloatMap | None:
        """Float32 [H, W], higher is more confident; None if the matcher has none."""


Matcher = Callable[[Image, Image], Matched]
Observer = Callable[[int, StereoSample, FloatMap], None]


@dataclass(frozen=True)
class PairResult:
    """The scores of one pair: error sums for every region that its ground truth defines."""

    name: str
    regions: dict[str, ErrorSums]
    seconds: float
    ause: float | None


@dataclass(frozen=True)
class Evaluation:
    """The scores of a matcher on a dataset, and the protocol used.

    Attributes:
        model: Name of the matcher in tables and reports.
        dataset: Name of the dataset.
        protocol: How it was scored.
        pairs: The scores of every pair.
        network: Name of the network, under which the paper lists its results.
        source: The file or name that the matcher was opened from.
    """

    model: str
    dataset: str
    protocol: ScoringProtocol
    pairs: list[PairResult]
    network: str
    source: str

    @property
    def published(self) -> paper.Published | None:
        """The paper's results of this network on this dataset, if there are any."""
        return paper.published(self.dataset, self.network)

    def value(self, metric: str, over: Average | None = None) -> float:
        """Return a metric, averaged as in the protocol by default; NaN if it is undefined."""
        definition = METRICS[metric]
        return average(self.in_region(definition.region), definition.statistic, over or self.protocol.average)

    def in_region(self, region: str) -> list[ErrorSums]:
        """Return the error sums of every pair that defines the region."""
        return [pair.regions[region] for pair in self.pairs if region in pair.regions]

    def region(self, region: str) -> dict[str, float]:
        """Return the errors in a region and its share of the scored pixels."""
        sums = self.in_region(region)
        over = self.protocol.average
        scored = sum(pair.regions["all"].pixels for pair in self.pairs if region in pair.regions)
        return {
            "share": 100 * sum(s.pixels for s in sums) / scored if scored else math.nan,
            "epe": average(sums, lambda s: s.epe, over),
            "bad1": average(sums, lambda s: s.bad(1.0), over),
            "bad3": average(sums, lambda s: s.bad(3.0), over),
        }

    @property
    def ause(self) -> float | None:
        """Mean over images of the area under the sparsification error; None without confidences."""
        areas = [pair.ause for pair in self.pairs if pair.ause is not None]
        return sum(areas) / len(areas) if areas else None

    @property
    def seconds(self) -> float:
        """Median time of one pair."""
        return float(np.median([pair.seconds for pair in self.pairs]))

    def notes(self) -> list[str]:
        """Say which ground truth is missing for some pairs."""
        total = len(self.pairs)
        without_mask = sum("visible" not in pair.regions for pair in self.pairs)
        without_objects = sum("foreground" not in pair.regions for pair in self.pairs)
        none_occluded = sum("occluded" in p.regions and not p.regions["occluded"].pixels for p in self.pairs)
        used = {METRICS[metric].region for metric in self.protocol.metrics}
        lines = []
        if "visible" in used and without_mask:
            lines.append(
                f"{without_mask} of {total} pairs have no occlusion mask and are not in the noc metrics"
            )
        if "visible" in used and none_occluded:
            lines.append(f"{none_occluded} of {total} pairs have no ground truth on occluded pixels")
        if "foreground" in used and without_objects:
            lines.append(
                f"{without_objects} of {total} pairs have no object map and are not in the bg and fg metrics"
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON; NaN becomes None."""
        return {
            "model": self.model,
            "network": self.network,
            "source": self.source,
            "dataset": self.dataset,
            "protocol": dict(describe(self.protocol)),
            "metrics": {metric: _number(self.value(metric)) for metric in self.protocol.metrics},
            "over_images": {metric: _number(self.value(metric, "images")) for metric in METRICS},
            "over_pixels": {metric: _number(self.value(metric, "pixels")) for metric in METRICS},
            "regions": {name: {k: _number(v) for k, v in self.region(name).items()} for name in REGIONS},
            "ause": self.ause,
            "seconds_per_pair": self.seconds,
            "notes": self.notes(),
            "pairs": [
                {"name": pair.name, "epe": _number(pair.regions["all"].epe), "seconds": pair.seconds}
                for pair in self.pairs
            ],
        }


def evaluate(
    matcher: Matcher,
    dataset: PairSource,
    *,
    model: str = "matcher",
    network: str | None = None,
    source: str | None = None,
    indices: Iterable[int] | None = None,
    observe: Observer | None = None,
) -> Evaluation:
    """Score a matcher on a dataset.

    Args:
        matcher: Called with the left and right image, uint8 RGB.
        dataset: Any source of samples with ground truth.
        model: The matcher's name in the result.
        network: Name of its network, under which the paper lists its results; `model` by default.
        source: The file or name that it was opened from; `model` by default.
        indices: Which pairs; all by default.
        observe: Called after each pair with its index, the sample and the dense prediction.
    """
    protocol = protocol_of(dataset.name)
    results = []
    for index in range(len(dataset)) if indices is None else indices:
        sample = dataset[index]
        result, dense = score_pair(matcher, sample, protocol)
        results.append(result)
        if observe is not None:
            observe(index, sample, dense)
    if not results:
        raise AanetError(f"There are no pairs of {dataset.name} to evaluate.")
    return Evaluation(model, dataset.name, protocol, results, network or model, source or model)


def score_pair(
    matcher: Matcher, sample: StereoSample, protocol: ScoringProtocol
) -> tuple[PairResult, FloatMap]:
    """Match one pair and score it against its ground truth; also returns the dense prediction."""
    if sample.disparity is None or sample.valid is None:
        raise AanetError(f"{sample.name} has no ground truth to evaluate against.")
    matched, seconds = run_matcher(matcher, sample)
    dense, given = fill_holes(matched.disparity)
    scored: Mask = sample.valid
    if protocol.max_disparity is not None:
        scored = scored & (sample.disparity < protocol.max_disparity)
    sums = {
        region: error_sums(dense, sample.disparity, mask, given)
        for region, mask in region_masks(sample, scored).items()
    }
    error: NDArray[np.float32] = np.abs(dense - sample.disparity)[scored]
    ause = None
    if matched.confidence is not None and error.size:
        ause = sparsification(error, matched.confidence[scored]).ause
    return PairResult(sample.name, sums, seconds, ause), dense


def run_matcher(matcher: Matcher, sample: StereoSample) -> tuple[Matched, float]:
    """Match a pair; returns the result and the time in seconds.  Errors name the pair."""
    start = time.perf_counter()
    try:
        matched = matcher(sample.left, sample.right)
    except AanetError as error:
        raise AanetError(f"{sample.name}: {error}") from error
    seconds = time.perf_counter() - start
    if matched.disparity.shape != sample.left.shape[:2]:
        got, wanted = matched.disparity.shape, sample.left.shape[:2]
        raise AanetError(f"{sample.name}: the matcher returned a map of {got}; the images are {wanted}.")
    return matched, seconds


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
