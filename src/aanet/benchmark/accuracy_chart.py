"""The chart of error against time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from aanet.benchmark.accuracy import AccuracyPoint, Pairs, pareto_front
from aanet.io.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Error = Callable[[AccuracyPoint], float]

# Told apart by people with any kind of color vision, and dark enough on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#AA3377", "#7A6000", "#555555", "#56A0D3", "#882255")
_ERRORS: tuple[tuple[str, Error], ...] = (
    ("end-point error, px", lambda point: point.epe),
    ("pixels with an error above 2 px, %", lambda point: point.bad2),
)
_DISTANCES = (7.0, 11.0, 16.0, 24.0, 34.0)  # of a label from its point, in points
_DIRECTIONS = 16
_CLEARANCE = 2.0  # pixels around a label that are kept free


def plot_accuracy(points: Sequence[AccuracyPoint], pairs: Pairs, machine: str, path: Path) -> None:
    """Draw the chart into a file."""
    figure = draw_accuracy(points, pairs, machine)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=figure.dpi)


def draw_accuracy(points: Sequence[AccuracyPoint], pairs: Pairs, machine: str) -> Figure:
    """Draw both errors against time: a line per matcher through its scales, and the Pareto front."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.6), layout="constrained", facecolor="white", dpi=130)
    figure.suptitle(f"{pairs.title}; {machine}", fontsize=11)
    panels = list(zip(figure.subplots(1, 2), _ERRORS, strict=True))
    for axes, (label, error) in panels:
        _draw(axes, points, error)
        axes.set_ylabel(label)
    figure.supxlabel(
        "seconds per pair (logarithmic); numbers at the points are scales; filled points on the gray line: "
        "none is both faster and better",
        fontsize=9,
    )
    figure.draw_without_rendering()  # the layout is final; labels are placed in pixels
    for axes, (_, error) in panels:
        _label(axes, points, error)
    return figure


def _draw(axes: Axes, points: Sequence[AccuracyPoint], error: Error) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    front = pareto_front(points, error)
    axes.set_xscale("log")
    axes.plot(
        [point.seconds for point in front],
        [error(point) for point in front],
        color="0.86",
        linewidth=9,
        solid_capstyle="round",
        zorder=1,
    )
    for color, line in _lines(points):
        axes.plot([p.seconds for p in line], [error(p) for p in line], color=color, linewidth=1.4, zorder=2)
        for point in line:
            face = color if point in front else "white"
            axes.plot(point.seconds, error(point), "o", color=color, markerfacecolor=face, zorder=3)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.13, y=0.10)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _lines(points: Sequence[AccuracyPoint]) -> list[tuple[str, list[AccuracyPoint]]]:
    """The points of each matcher by time, with its color."""
    names = list(dict.fromkeys(point.model for point in points))
    by_name = [[point for point in points if point.model == name] for name in names]
    return [
        (_COLORS[place % len(_COLORS)], sorted(line, key=lambda point: point.seconds))
        for place, line in enumerate(by_name)
    ]


def _label(axes: Axes, points: Sequence[AccuracyPoint], error: Error) -> None:
    """Write the scales at the points, and the name of each matcher at one end of its line."""
    lines = [
        (color, axes.transData.transform([(p.seconds, error(p)) for p in line]), line)
        for color, line in _lines(points)
    ]
    dots = np.concatenate([places for _, places, _ in lines])
    strokes = np.concatenate([_along(places) for _, places, _ in lines])
    placed = _Placed(axes, dots, strokes)
    for color, places, line in lines:
        placed.add(line[0].model, [places[-1], places[0]], color=color, fontsize=10, fontweight="bold")
    for color, places, line in lines:
        for place, point in zip(places, line, strict=True):
            placed.add(point.scale, [place], color=color, fontsize=8)


def _along(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points every few pixels along a line."""
    parts = [places[:1]]
    for start, end in itertools.pairwise(places):
        count = max(int(np.hypot(*(end - start)) / 4), 2)
        parts.append(start + np.linspace(0, 1, count)[:, None] * (end - start))
    return np.concatenate(parts)


class _Placed:
    """Labels of one panel, each where it overlaps least with points, lines and earlier labels."""

    def __init__(
        self,
        axes: Axes,
        dots: NDArray[np.float64],
        strokes: NDArray[np.float64],
    ) -> None:
        self._axes, self._dots, self._strokes = axes, dots, strokes
        self._boxes: list[tuple[float, float, float, float]] = []  # left, bottom, right, top

    def add(self, words: str, anchors: Sequence[NDArray[np.float64]], **style: str | float) -> None:
        """Write the words near one of the anchors, which are in pixels."""
        text = self._axes.text(0, 0, words, ha="center", va="center", zorder=4, **style)  # type: ignore[arg-type]
        extent = text.get_window_extent()
        half = np.array((extent.width, extent.height)) / 2
        middles = [middle for anchor in anchors for middle in self._around(anchor, half)]
        costs = [self._cost(middle, half) + 0.01 * rank for rank, middle in enumerate(middles)]
        best = middles[int(np.argmin(costs))]
        self._boxes.append((*(best - half), *(best + half)))
        x, y = self._axes.transData.inverted().transform(best)
        text.set_position((float(x), float(y)))

    def _around(self, anchor: NDArray[np.float64], half: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Middles of the label such that its nearest side has a given distance, near ones first."""
        pixels = self._axes.figure.dpi / 72
        middles = []
        for distance in _DISTANCES:
            for step in range(_DIRECTIONS):
                angle = math.pi / 4 + 2 * math.pi * step / _DIRECTIONS
                toward = np.array((math.cos(angle), math.sin(angle)))
                middles.append(anchor + toward * (half + distance * pixels * 0.7))
        return middles

    def _cost(self, middle: NDArray[np.float64], half: NDArray[np.float64]) -> float:
        low, high = middle - half - _CLEARANCE, middle + half + _CLEARANCE
        frame = self._axes.bbox
        outside = low[0] < frame.x0 or low[1] < frame.y0 or high[0] > frame.x1 or high[1] > frame.y1
        overlaps = sum(
            low[0] < right and high[0] > left and low[1] < top and high[1] > bottom
            for left, bottom, right, top in self._boxes
        )
        reach = 5.0  # radius of a point in pixels
        hidden = np.all((self._dots > low - reach) & (self._dots < high + reach), axis=1).sum()
        crossed = np.all((self._strokes > low) & (self._strokes < high), axis=1).any()
        return float(1000 * outside + 100 * overlaps + 50 * hidden + 5 * crossed)
