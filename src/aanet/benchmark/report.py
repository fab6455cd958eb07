"""Reports of measurements: table, Markdown and chart."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from aanet.benchmark.inference import BASELINE, Conditions, Measurement, speedup
from aanet.evaluation import paper
from aanet.evaluation.markdown import table
from aanet.io.atomic import atomic_path
from aanet.models import zoo

HEADINGS: tuple[str, ...] = ("model", "engine", "median", "p10 – p90", "× base", "memory", "paper", "mem.")


class Presentation(Protocol):
    """A module that presents measurements: this one by engine, `comparison` as the paper's table."""

    HEADINGS: tuple[str, ...]

    def rows(self, measurements: list[Measurement]) -> list[tuple[str, ...]]:
        """Return the cells of one row per measurement."""

    def markdown(self, measurements: list[Measurement], run: Conditions) -> str:
        """Return the report."""

    def plot(self, measurements: list[Measurement], run: Conditions, path: Path) -> None:
        """Draw a chart."""


def rows(measurements: list[Measurement]) -> list[tuple[str, ...]]:
    """Return the cells of one row per measurement, in the order of `HEADINGS`."""
    lines: list[tuple[str, ...]] = []
    for each in measurements:
        timing, published = each.timing, paper.COMPARISON_3D.get(each.model.network)
        ratio = None if each.engine == BASELINE else speedup(each, measurements)
        lines.append(
            (
                each.model.name,
                each.engine,
                f"{timing.median:.2f} s" if timing else "cannot run",
                f"{timing.percentile(10):.2f} – {timing.percentile(90):.2f}" if timing else "–",
                f"{ratio:.2f}" if ratio else "–",
                f"{each.peak_memory / 2**30:.2f} GB" if each.peak_memory else "–",
                f"{published.time_ms} ms" if published else "–",
                f"{published.memory_gb:.2f} GB" if published else "–",
            )
        )
    return lines


def aggregation_speedups(measurements: list[Measurement]) -> list[str]:
    """Return a sentence for each 3D network: the speedup by adaptive aggregation, here and in the paper."""
    medians = {(each.model.network, each.engine): each.timing.median for each in measurements if each.timing}
    lines = []
    for network, adaptive in zoo.replaced_3d().items():
        for engine in dict.fromkeys(each.engine for each in measurements):
            if (network, engine) in medians and (adaptive, engine) in medians:
                ratio = medians[network, engine] / medians[adaptive, engine]
                here = f"{zoo.card(adaptive).title} is {ratio:.1f} × as fast as {zoo.card(network).title}"
                published = paper.COMPARISON_3D[network].time_ms / paper.COMPARISON_3D[adaptive].time_ms
                lines.append(f"{here} on {engine} (paper, on a V100: {published:.1f} ×).")
    return lines


def markdown(measurements: list[Measurement], run: Conditions) -> str:
    """Return the report as Markdown."""
    lines = [*table(HEADINGS, rows(measurements)), "", run.sentence()]
    if measurements:
        lines += ["", *aggregation_speedups(measurements)]
    return "\n".join(lines) + "\n"


def plot(measurements: list[Measurement], run: Conditions, path: Path) -> None:
    """Draw the published accuracy against time: the paper's, on a GPU, and the measured one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    engines = [engine for engine in dict.fromkeys(each.engine for each in measurements) if engine != BASELINE]
    published = paper.SCENE_FLOW | paper.COMPARISON_3D
    names = [name for name in dict.fromkeys(each.model.network for each in measurements) if name in published]
    seconds = {
        name: row.time_ms / 1000 if isinstance(row, paper.ComparisonRow) else row.time_s
        for name, row in ((name, published[name]) for name in names)
    }
    errors = {name: published[name].epe for name in names}
    axes.scatter(
        [seconds[name] for name in names],
        [errors[name] for name in names],
        marker="^",
        color="0.45",
        label="paper, NVIDIA V100",
    )
    for index, engine in enumerate(engines):
        points = [
            (each.timing.median, errors[each.model.network])
            for each in measurements
            if each.engine == engine and each.timing and each.model.network in errors
        ]
        if points:
            axes.scatter(*zip(*points, strict=True), color=f"C{index}", label=f"{engine}, measured here")
    for name in names:
        axes.annotate(
            zoo.card(name).title,
            (seconds[name], errors[name]),
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=9,
            color="0.3",
        )
    axes.set_xscale("log")
    axes.set_xlabel(f"seconds for one pair (here: {run.size[0]}×{run.size[1]}, {run.threads} CPU threads)")
    axes.set_ylabel("published end-point error on Scene Flow, px")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130)
