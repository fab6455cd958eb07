"""Growth of time and memory with the image size and the disparity range."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aanet.benchmark.memory import peak_memory
from aanet.engines.factory import open_engine
from aanet.evaluation.markdown import table
from aanet.evaluation.timing import time_interleaved
from aanet.io.atomic import atomic_path
from aanet.models.complexity import size_rule

SIZES = ((240, 320), (480, 640), (720, 960), (960, 1280), (1440, 1920))
RANGES = (96, 192, 384)


@dataclass(frozen=True)
class Point:
    """Time and memory for one pair of one size, with one disparity range."""

    max_disparity: int
    height: int
    width: int
    seconds: float
    peak_memory: int  # bytes

    @property
    def megapixels(self) -> float:
        """The size of the image."""
        return self.height * self.width / 1e6

    @property
    def gigabytes(self) -> float:
        """The peak memory."""
        return self.peak_memory / 2**30


def measure_scaling(
    name: str,
    engine: str,
    rounds: int,
    sizes: tuple[tuple[int, int], ...] = SIZES,
    ranges: tuple[int, ...] = RANGES,
    observe: Callable[[str], None] = lambda _: None,
) -> list[Point]:
    """Measure every size with every range; sizes are rounded up to those that the network takes."""
    rule = size_rule(name)
    points = []
    for wanted in sizes:
        height, width = (rule.round_up(side) for side in wanted)
        runs = {str(limit): _prediction(name, engine, limit, (height, width)) for limit in ranges}
        observe(f"{height}×{width}")
        timings = time_interleaved(runs, rounds)
        del runs  # frees their memory for the process that measures it
        for limit in ranges:
            peak = peak_memory(name, (height, width), limit, engine)
            points.append(Point(limit, height, width, timings[str(limit)].median, peak))
    return points


def _prediction(name: str, engine: str, max_disparity: int, size: tuple[int, int]) -> Callable[[], object]:
    opened = open_engine(name, weights="random", engine=engine, max_disparity=max_disparity)
    left, right = np.random.default_rng(0).random((2, 1, 3, *size), dtype=np.float32)
    return lambda: opened(left, right)


def exponent(points: list[Point], value: Callable[[Point], float]) -> float:
    """Fit value = a · megapixels^b by least squares of the logarithms, and return b."""
    x = [math.log(point.megapixels) for point in points]
    y = [math.log(value(point)) for point in points]
    slope, _ = np.polyfit(x, y, 1)
    return float(slope)


def plot_scaling(points: list[Point], title: str, path: Path) -> None:
    """Draw time and memory against the image size, one line per disparity range."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    figure.suptitle(title)
    panels: list[tuple[str, Callable[[Point], float]]] = [
        ("seconds", lambda point: point.seconds),
        ("peak memory, GB", lambda point: point.gigabytes),
    ]
    for axes, (label, value) in zip(figure.subplots(1, 2), panels, strict=True):
        for limit in sorted({point.max_disparity for point in points}):
            line = [point for point in points if point.max_disparity == limit]
            name = f"disparities below {limit}: ∝ pixels^{exponent(line, value):.2f}"
            axes.plot([p.megapixels for p in line], [value(p) for p in line], marker="o", label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):  # plain numbers, not powers of ten
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("megapixels")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False, fontsize=9)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130)


def rows(points: list[Point]) -> list[tuple[str, ...]]:
    """Return a line of text per point: size, disparity range, seconds, peak memory."""
    return [
        (
            f"{point.height}×{point.width}",
            f"{point.max_disparity}",
            f"{point.seconds:.2f}",
            f"{point.gigabytes:.2f} GB",
        )
        for point in points
    ]


def growth(points: list[Point]) -> list[str]:
    """Say for each disparity range how time and memory grow with the image."""
    lines = []
    for limit in sorted({point.max_disparity for point in points}):
        line = [point for point in points if point.max_disparity == limit]
        time, memory = exponent(line, lambda p: p.seconds), exponent(line, lambda p: p.gigabytes)
        lines.append(f"Below {limit}: time grows with pixels^{time:.2f}, memory with pixels^{memory:.2f}.")
    return lines


def markdown(points: list[Point]) -> str:
    """Return the measurements as a Markdown table."""
    return "\n".join(table(("size", "disparities below", "seconds", "peak memory"), rows(points))) + "\n"
