"""Error against time: several matchers at several scales on pairs with ground truth, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aanet.data.datasets import StereoDataset, open_dataset
from aanet.data.datasets.card import Protocol
from aanet.data.motorcycle import motorcycle
from aanet.data.sample import StereoSample
from aanet.errors import InputError
from aanet.evaluation.evaluate import Matcher, score_pair
from aanet.evaluation.markdown import table
from aanet.evaluation.metrics import ErrorSums, average
from aanet.evaluation.protocols import protocol_of
from aanet.evaluation.report import spread
from aanet.inference.options import Scale
from aanet.io.atomic import atomic_path
from aanet.matcher import StereoMatcher

MOTORCYCLE = "motorcycle"
HEADINGS: tuple[str, ...] = ("model", "scale", "seconds", "EPE", "> 2 px", "engine")


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
    """

    model: str
    scale: str
    seconds: float
    epe: float
    bad2: float
    engine: str


@dataclass(frozen=True)
class Pairs:
    """Pairs with ground truth, and how they are scored."""

    name: str
    source: Sequence[StereoSample] | StereoDataset  # read one pair at a time
    indices: Sequence[int]
    protocol: Protocol


def open_pairs(which: str, limit: int | None = None) -> Pairs:
    """Open what a user names: "motorcycle", or DATASET=FOLDER."""
    if which == MOTORCYCLE:
        return Pairs("Motorcycle", [motorcycle()], [0], protocol_of(MOTORCYCLE))
    name, equals, root = which.partition("=")
    if not equals or not root:
        raise InputError(f"The pairs are given as {MOTORCYCLE} or DATASET=FOLDER; got {which!r}.")
    protocol = protocol_of(name)
    dataset = open_dataset(name, Path(root), protocol.split)
    indices = spread(len(dataset), min(limit or len(dataset), len(dataset)))
    if not indices:
        raise InputError(f"There are no pairs of {name} in {root}.")
    return Pairs(name, dataset, indices, protocol)


def parse_scales(text: str) -> dict[str, Scale]:
    """Read a comma-separated list of factors and "auto"."""
    scales: dict[str, Scale] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            scales[part] = "auto" if part == "auto" else float(part)
        except ValueError:
            raise InputError(f"Scales are numbers or auto, separated by commas; got {part!r}.") from None
    if not scales:
        raise InputError("At least one scale is needed.")
    return scales


def measure_accuracy(
    matchers: Mapping[str, StereoMatcher],
    scales: Mapping[str, Scale],
    pairs: Pairs,
    rounds: int = 1,
    observe: Callable[[], None] = lambda: None,
) -> list[AccuracyPoint]:
    """Score and time every matcher at every scale.

    The candidates take turns on each pair, so that all of them see the same variations of a shared machine's
    speed. Each is run once on the first pair before anything is timed.

    Args:
        matchers: The matchers by their names.
        scales: The scales by their names.
        pairs: Pairs with ground truth.
        rounds: How often every pair is matched.
        observe: Called after each match, including the first untimed ones.
    """
    candidates: dict[tuple[str, str], Matcher] = {
        (name, scale): partial(matcher, scale=factor, inspect=False)
        for name, matcher in matchers.items()
        for scale, factor in scales.items()
    }
    first = pairs.source[pairs.indices[0]]
    for candidate in candidates.values():
        candidate(first.left, first.right)
        observe()
    sums: dict[tuple[str, str], list[ErrorSums]] = {key: [] for key in candidates}
    seconds: dict[tuple[str, str], list[float]] = {key: [] for key in candidates}
    for turn in range(rounds):
        for index in pairs.indices:
            sample = pairs.source[index]
            for key, candidate in candidates.items():
                scored, _ = score_pair(candidate, sample, pairs.protocol)
                seconds[key].append(scored.seconds)
                if turn == 0:
                    sums[key].append(scored.regions["all"])
                observe()
    over = pairs.protocol.average
    return [
        AccuracyPoint(
            model=name,
            scale=scale,
            seconds=statistics.median(seconds[name, scale]),
            epe=average(sums[name, scale], lambda s: s.epe, over),
            bad2=average(sums[name, scale], lambda s: s.bad(2.0), over),
            engine=matchers[name].engine.description,
        )
        for name, scale in candidates
    ]


def rows(points: Sequence[AccuracyPoint]) -> list[tuple[str, ...]]:
    """Return the cells of one row per point, in the order of `HEADINGS`."""
    return [
        (p.model, p.scale, f"{p.seconds:.2f}", f"{p.epe:.2f} px", f"{p.bad2:.1f} %", p.engine) for p in points
    ]


def as_dict(points: Sequence[AccuracyPoint], pairs: Pairs, conditions: str) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {
        "pairs": pairs.name,
        "count": len(pairs.indices),
        "conditions": conditions,
        "points": [asdict(point) for point in points],
    }


def markdown(points: Sequence[AccuracyPoint], conditions: str) -> str:
    """Return the table as Markdown."""
    return "\n".join([*table(HEADINGS, rows(points)), "", conditions]) + "\n"


def plot_accuracy(points: Sequence[AccuracyPoint], pairs: Pairs, machine: str, path: Path) -> None:
    """Draw both errors against time, one line per matcher through its scales."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(11, 5), layout="constrained")
    count = len(pairs.indices)
    figure.suptitle(f"{pairs.name}, {count} {'pair' if count == 1 else 'pairs'}; {machine}")
    errors: list[tuple[str, Callable[[AccuracyPoint], float]]] = [
        ("end-point error, px", lambda point: point.epe),
        ("pixels with an error above 2 px, %", lambda point: point.bad2),
    ]
    for axes, (label, error) in zip(figure.subplots(1, 2), errors, strict=True):
        for name in dict.fromkeys(point.model for point in points):
            line = sorted((point for point in points if point.model == name), key=lambda p: p.seconds)
            axes.plot([p.seconds for p in line], [error(p) for p in line], marker="o", label=name)
            for point in line:
                axes.annotate(
                    point.scale,
                    (point.seconds, error(point)),
                    xytext=(4, 4),
                    textcoords="offset points",
                    fontsize=8,
                    color="0.35",
                )
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(bottom=0)
        axes.set_xlabel("seconds per pair; the numbers at the points are scales")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130)
