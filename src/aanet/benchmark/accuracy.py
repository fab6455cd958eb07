"""Error against time: several matchers at several scales on pairs with ground truth, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from aanet.data.datasets import StereoDataset, open_dataset
from aanet.data.datasets.card import Protocol
from aanet.data.motorcycle import motorcycle
from aanet.data.sample import StereoSample
from aanet.errors import AanetError, InputError
from aanet.evaluation.evaluate import Matcher, PairResult, score_pair
from aanet.evaluation.markdown import table
from aanet.evaluation.metrics import average
from aanet.evaluation.origin import MatcherOrigin
from aanet.evaluation.protocols import describe, protocol_of
from aanet.evaluation.report import spread
from aanet.inference.options import MatchOptions, Scale
from aanet.inference.processing import Processing
from aanet.matcher import StereoMatcher

MOTORCYCLE = "motorcycle"
HEADINGS: tuple[str, ...] = ("model", "scale", "seconds", "EPE", "> 2 px", "front")

Key = tuple[str, str]  # the names of a matcher and of a scale


@dataclass(frozen=True)
class AccuracyPoint:
    """A matcher at one scale.

    Attributes:
        model: Its name in tables and in the chart.
        scale: "1", "0.5", "auto", …
        seconds: Median time of a pair, including resizing and post-processing.
        epe: End-point error in pixels.
        bad2: Percentage of pixels with an error above 2 pixels.
        engine: The engine that was used, with its precision.
        done: What was done to each pair.
    """

    model: str
    scale: str
    seconds: float
    epe: float
    bad2: float
    engine: str
    done: tuple[Processing, ...] = ()

    @property
    def scale_used(self) -> str:
        """The scale, and the factors that "auto" stood for."""
        factors = sorted({each.scale for each in self.done})
        if self.scale != "auto" or not factors:
            return self.scale
        ends = dict.fromkeys(f"{factor:.3g}" for factor in (factors[0], factors[-1]))
        return f"auto ({' – '.join(ends)})"


@dataclass(frozen=True)
class Measured:
    """The points of one run, and the candidates that could not match the pairs, with the reasons."""

    points: list[AccuracyPoint] = field(default_factory=list)
    failed: dict[Key, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pairs:
    """Pairs with ground truth, and how they are scored."""

    name: str
    source: Sequence[StereoSample] | StereoDataset  # read one pair at a time
    indices: Sequence[int]
    protocol: Protocol

    def describe(self) -> list[tuple[str, str]]:
        """Return the pairs and the protocol for reports."""
        return [("pairs", self.title), *describe(self.protocol)]

    @property
    def title(self) -> str:
        """The name and the number of the pairs."""
        count = len(self.indices)
        return f"{self.name}, {count} {'pair' if count == 1 else 'pairs'}"


def open_pairs(
    which: str, limit: int | None = None, split: str | None = None, options: Mapping[str, Any] | None = None
) -> Pairs:
    """Open what a user names.

    Args:
        which: "motorcycle", or DATASET=FOLDER.
        limit: Most pairs to use, evenly spaced.
        split: Of the dataset; that of its protocol by default.
        options: Of the dataset.
    """
    if which == MOTORCYCLE:
        if split is not None or options:
            raise InputError(f"{MOTORCYCLE} is a single pair without splits and options.")
        return Pairs("Motorcycle", [motorcycle()], [0], protocol_of(MOTORCYCLE))
    name, equals, root = which.partition("=")
    if not equals or not root:
        raise InputError(f"The pairs are given as {MOTORCYCLE} or DATASET=FOLDER; got {which!r}.")
    protocol = protocol_of(name)
    dataset = open_dataset(name, Path(root), split or protocol.split, **(options or {}))
    indices = spread(len(dataset), min(limit or len(dataset), len(dataset)))
    if dataset.pairs[0].disparity is None:
        raise InputError(f"The split {dataset.split!r} of {name} has no ground truth to measure errors with.")
    return Pairs(f"{name} {dataset.split}", dataset, indices, protocol)


def parse_scales(text: str) -> dict[str, Scale]:
    """Read a comma-separated list of factors and "auto"."""
    scales: dict[str, Scale] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            scales[part] = "auto" if part == "auto" else float(part)
        except ValueError:
            raise InputError(f"Scales are numbers or auto, separated by commas; got {part!r}.") from None
        MatchOptions(scale=scales[part])  # refuses factors out of bounds
    if not scales:
        raise InputError("At least one scale is needed.")
    return scales


def scales_for(matcher: StereoMatcher, scales: Mapping[str, Scale]) -> dict[str, Scale]:
    """The scales at which a matcher is measured: not "auto" where it is 1 and 1 is measured as well."""
    same = not matcher.spec.hints.upscale_to and 1.0 in scales.values()
    return {name: scale for name, scale in scales.items() if not (same and scale == "auto")}


def measure_accuracy(
    matchers: Mapping[str, StereoMatcher],
    scales: Mapping[str, Scale],
    pairs: Pairs,
    rounds: int = 1,
    observe: Callable[[], None] = lambda: None,
    options: MatchOptions | None = None,
) -> Measured:
    """Score and time every matcher at every scale.

    The candidates take turns on each pair, so that all of them see the same variations of a shared machine's
    speed. Each is run once on the first pair before anything is timed; one that cannot match it is left out.

    Args:
        matchers: The matchers by their names.
        scales: The scales by their names.
        pairs: Pairs with ground truth.
        rounds: How often every pair is matched.
        observe: Called after each match, including the first untimed ones.
        options: Of the matches, except for the scale.
    """
    options = replace(options or MatchOptions(), inspect=False)
    candidates: dict[Key, Matcher] = {
        (name, scale): partial(matcher, options=replace(options, scale=factor))
        for name, matcher in matchers.items()
        for scale, factor in scales_for(matcher, scales).items()
    }
    failed = _warm_up(candidates, pairs.source[pairs.indices[0]], observe)
    candidates = {key: candidate for key, candidate in candidates.items() if key not in failed}
    if not candidates:
        raise AanetError(next(iter(failed.values())))
    scored: dict[Key, list[PairResult]] = {key: [] for key in candidates}
    for _ in range(rounds):
        for index in pairs.indices:
            sample = pairs.source[index]
            for key, candidate in candidates.items():
                scored[key].append(score_pair(candidate, sample, pairs.protocol)[0])
                observe()
    engines = {name: matcher.engine.description for name, matcher in matchers.items()}
    return Measured([_point(key, scored[key], pairs, engines[key[0]]) for key in candidates], failed)


def _warm_up(
    candidates: Mapping[Key, Matcher], first: StereoSample, observe: Callable[[], None]
) -> dict[Key, str]:
    """Run every candidate once; returns the reasons of those that cannot match the pair."""
    failed = {}
    for key, candidate in candidates.items():
        try:
            candidate(first.left, first.right)
        except AanetError as error:
            failed[key] = str(error)
        observe()
    return failed


def _point(key: Key, results: Sequence[PairResult], pairs: Pairs, engine: str) -> AccuracyPoint:
    first_round = results[: len(pairs.indices)]  # the others give the same disparities
    sums, over = [each.regions["all"] for each in first_round], pairs.protocol.average
    return AccuracyPoint(
        model=key[0],
        scale=key[1],
        seconds=statistics.median(each.seconds for each in results if each.seconds is not None),
        epe=average(sums, lambda s: s.epe, over),
        bad2=average(sums, lambda s: s.bad(2.0), over),
        engine=engine,
        done=tuple(each.processing for each in first_round if each.processing is not None),
    )


def pareto_front(
    points: Iterable[AccuracyPoint], error: Callable[[AccuracyPoint], float] = lambda point: point.epe
) -> list[AccuracyPoint]:
    """Return the points than which none is both faster and more accurate, fastest first."""
    front: list[AccuracyPoint] = []
    for point in sorted(points, key=lambda point: (point.seconds, error(point))):
        if not front or error(point) < error(front[-1]):
            front.append(point)
    return front


def rows(points: Sequence[AccuracyPoint]) -> list[tuple[str, ...]]:
    """Return the cells of one row per point, in the order of `HEADINGS`."""
    best = [set(map(id, pareto_front(points, error))) for error in (lambda p: p.epe, lambda p: p.bad2)]
    marks = {(True, True): "both", (True, False): "EPE", (False, True): "> 2 px", (False, False): ""}
    return [
        (
            p.model,
            p.scale_used,
            f"{p.seconds:.3f}",
            f"{p.epe:.2f} px",
            f"{p.bad2:.1f} %",
            marks[id(p) in best[0], id(p) in best[1]],
        )
        for p in points
    ]


def protocol_lines(
    measured: Measured, origins: Mapping[str, MatcherOrigin], pairs: Pairs, machine: str
) -> list[tuple[str, str]]:
    """Return what is needed to measure the points again, as (aspect, words)."""
    lines = [("measured", machine), *pairs.describe()]
    for name, origin in origins.items():
        done = [each for point in measured.points if point.model == name for each in point.done]
        lines += [*origin.identity(name), (f"{name}, images", "; ".join(origin.around(done)))]
    for (name, scale), reason in measured.failed.items():
        lines.append((f"{name} at scale {scale} is left out", reason))
    return lines


def as_dict(
    measured: Measured, origins: Mapping[str, MatcherOrigin], pairs: Pairs, machine: str
) -> dict[str, Any]:
    """Return plain values for JSON."""
    fronts = {
        "epe": pareto_front(measured.points, lambda p: p.epe),
        "bad2": pareto_front(measured.points, lambda p: p.bad2),
    }
    return {
        "pairs": pairs.name,
        "count": len(pairs.indices),
        "protocol": dict(describe(pairs.protocol)),
        "conditions": machine,
        "models": {name: origin.as_dict() for name, origin in origins.items()},
        "points": [
            {
                "model": point.model,
                "scale": point.scale,
                "scales_used": sorted({each.scale for each in point.done}),
                "seconds": point.seconds,
                "epe": point.epe,
                "bad2": point.bad2,
                "engine": point.engine,
                "on_front_of": [name for name, front in fronts.items() if point in front],
            }
            for point in measured.points
        ],
        "left_out": [
            {"model": name, "scale": scale, "reason": reason}
            for (name, scale), reason in measured.failed.items()
        ],
    }


def markdown(measured: Measured, origins: Mapping[str, MatcherOrigin], pairs: Pairs, machine: str) -> str:
    """Return the table and the protocol as Markdown."""
    lines = [*table(HEADINGS, rows(measured.points)), "", "## Protocol", ""]
    lines += [f"- {what}: {words}" for what, words in protocol_lines(measured, origins, pairs, machine)]
    return "\n".join(lines) + "\n"
