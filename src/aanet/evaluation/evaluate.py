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
from aanet.evaluation.origin import Origin
from aanet.evaluation.protocols import describe, protocol_of
from aanet.evaluation.regions import region_masks
from aanet.evaluation.sparsification import sparsification
from aanet.inference.processing import Processing
from aanet.result import StereoResult
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


@dataclass(frozen=True)
class Prediction:
    """The least that a matcher may return: a disparity map, and a confidence if it has one."""

    disparity: FloatMap
    confidence: FloatMap | None = None


Matcher = Callable[[Image, Image], Matched]
Observer = Callable[[int, StereoSample, FloatMap], None]


@dataclass(frozen=True)
class PairResult:
    """The scores of one pair: error sums for every region that its ground truth defines.

    Attributes:
        name: Of the pair.
        regions: The sums by region.
        seconds: Time of the match; None if the map was read from a file.
        ause: Area under the sparsification error; None without confidences.
        processing: What was done to the pair; None if that is not known.
        largest: The largest true disparity that was scored, in px; None without any.
    """

    name: str
    regions: dict[str, ErrorSums]
    seconds: float | None
    ause: float | None
    processing: Processing | None = None
    largest: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "epe": _number(self.regions["all"].epe),
            "seconds": self.seconds,
            "largest_true_disparity": self.largest,
            "processing": self.processing and self.processing.as_dict(),
        }


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
        total: Number of pairs that were to be scored; a map of another program may be missing.
        origin: How the disparities were obtained, if that is known.
    """

    model: str
    dataset: str
    protocol: ScoringProtocol
    pairs: list[PairResult]
    network: str
    source: str
    total: int
    origin: Origin | None = None

    @property
    def row_name(self) -> str:
        """The name, and how many of the pairs were scored if some were not."""
        scored = len(self.pairs)
        return self.model if scored == self.total else f"{self.model} ({scored} of {self.total} pairs)"

    def origin_lines(self) -> list[tuple[str, str]]:
        """Return how the disparities were obtained, for reports."""
        if self.origin is None:
            return [] if self.source == self.model else [(self.model, f"{self.source} ({self.network})")]
        return self.origin.lines(self.model, [each.processing for each in self.pairs if each.processing])

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
    def seconds(self) -> float | None:
        """Median time of one pair; None if the maps were read from files."""
        measured = [pair.seconds for pair in self.pairs if pair.seconds is not None]
        return float(np.median(measured)) if measured else None

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
        if none_occluded:
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
            "origin": None if self.origin is None else self.origin.as_dict(),
            "dataset": self.dataset,
            "scored_pairs": len(self.pairs),
            "total_pairs": self.total,
            "protocol": dict(describe(self.protocol)),
            "metrics": {metric: _number(self.value(metric)) for metric in self.protocol.metrics},
            "over_images": {metric: _number(self.value(metric, "images")) for metric in METRICS},
            "over_pixels": {metric: _number(self.value(metric, "pixels")) for metric in METRICS},
            "regions": {name: {k: _number(v) for k, v in self.region(name).items()} for name in REGIONS},
            "ause": self.ause,
            "seconds_per_pair": self.seconds,
            "notes": self.notes(),
            "pairs": [pair.as_dict() for pair in self.pairs],
        }


def evaluate(
    matcher: Matcher,
    dataset: PairSource,
    *,
    model: str = "matcher",
    network: str | None = None,
    source: str | None = None,
    origin: Origin | None = None,
    indices: Iterable[int] | None = None,
    observe: Observer | None = None,
) -> Evaluation:
    """Score a matcher on a dataset.

    Args:
        matcher: Any function of the left and right image, uint8 RGB [H, W, 3]; it returns a `StereoResult`,
            a `Prediction`, or anything else with a disparity and a confidence.
        dataset: Any source of samples with ground truth.
        model: The matcher's name in the result.
        network: Name of its network, under which the paper lists its results; `model` by default.
        source: The file or name that it was opened from; `model` by default.
        origin: How it computes its disparities, for reports.
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
    return of_results(results, dataset, model, network, source, origin)


def of_results(
    results: list[PairResult],
    dataset: PairSource,
    model: str,
    network: str | None = None,
    source: str | None = None,
    origin: Origin | None = None,
) -> Evaluation:
    """The evaluation of pairs that are scored; the arguments are those of `evaluate`."""
    if not results:
        raise AanetError(f"There are no pairs of {dataset.name} to evaluate.")
    return Evaluation(
        model=model,
        dataset=dataset.name,
        protocol=protocol_of(dataset.name),
        pairs=results,
        network=network or model,
        source=source or model,
        total=len(results),
        origin=origin,
    )


def score_pair(
    matcher: Matcher, sample: StereoSample, protocol: ScoringProtocol
) -> tuple[PairResult, FloatMap]:
    """Match one pair and score it against its ground truth; also returns the dense prediction."""
    matched, seconds = run_matcher(matcher, sample)
    return score_map(matched, sample, protocol, seconds)


def score_map(
    matched: Matched, sample: StereoSample, protocol: ScoringProtocol, seconds: float | None
) -> tuple[PairResult, FloatMap]:
    """Score a disparity map against the ground truth of its pair; also returns it without holes."""
    if sample.disparity is None or sample.valid is None:
        raise AanetError(f"{sample.name} has no ground truth to evaluate against.")
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
    done = matched.processing if isinstance(matched, StereoResult) else None
    largest = float(sample.disparity[scored].max()) if error.size else None
    return PairResult(sample.name, sums, seconds, ause, done, largest), dense


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
