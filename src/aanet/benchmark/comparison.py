"""Measurements of the paper's table 2: four networks with 3D convolutions and with adaptive aggregation."""

from __future__ import annotations

from pathlib import Path

from aanet.benchmark.inference import Conditions, Measurement
from aanet.benchmark.report import aggregation_speedups
from aanet.evaluation import paper
from aanet.evaluation.markdown import table
from aanet.io.atomic import atomic_path
from aanet.models import zoo

# Cells with a slash are ours/the paper's.
HEADINGS: tuple[str, ...] = ("network", "M par", "G MACs", "GB", "time", "3D/AA", "G/s")
_COLORS = {"3D": "#9aa5b1", "AA": "#1f77b4"}


def rows(measurements: list[Measurement]) -> list[tuple[str, ...]]:
    """Return the cells of one row per network; G/s is the total of multiply-accumulates per second."""
    seconds = {each.model.network: each.timing.median for each in measurements if each.timing}
    lines: list[tuple[str, ...]] = []
    for each in measurements:
        assert each.cost is not None  # the table has networks only
        row, time = paper.COMPARISON_3D[each.model.network], seconds.get(each.model.network)
        plain = zoo.card(each.model.network).replaces
        ratio = "–"
        if plain in seconds and time:
            published = paper.COMPARISON_3D[plain].time_ms / row.time_ms
            ratio = f"{seconds[plain] / time:.1f}/{published:.1f} ×"
        memory = _short(each.peak_memory / 2**30) if each.peak_memory else "–"
        lines.append(
            (
                each.model.name,
                f"{each.cost.parameters / 1e6:.2f}/{row.parameters_m:.2f}",
                f"{each.cost.paper_macs / 1e9:.0f}/{row.macs_g:.0f}",
                f"{memory}/{_short(row.memory_gb)}",
                f"{_short(time) if time else '–'}/{_short(row.time_ms / 1000)} s",
                ratio,
                f"{each.cost.total_macs / 1e9 / time:.0f}" if time else "–",
            )
        )
    return lines


def _short(value: float) -> str:
    """About three digits, so that the table fits into 80 columns."""
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def markdown(measurements: list[Measurement], run: Conditions) -> str:
    """Return the table and the speedups as Markdown."""
    lines = [*table(HEADINGS, rows(measurements)), "", run.sentence(), ""]
    lines += [f"- {line}" for line in aggregation_speedups(measurements)]
    return "\n".join(lines) + "\n"


def plot(measurements: list[Measurement], run: Conditions, path: Path) -> None:
    """Draw time and memory of each pair of networks, with their ratio."""
    from matplotlib.figure import Figure

    known = {each.model.network: each for each in measurements if each.timing and each.peak_memory}
    pairs = [pair for pair in zoo.replaced_3d().items() if set(pair) <= known.keys()]
    figure = Figure(figsize=(10, 1.2 + 1.0 * max(len(pairs), 1)), layout="constrained")
    height, width = run.size
    figure.suptitle(f"One pair of {height}×{width} on {run.threads} CPU threads, and on the paper's V100")
    panels = (
        ("seconds", {n: m.timing.median for n, m in known.items() if m.timing}, _published_seconds()),
        (
            "peak memory, GB",
            {n: m.peak_memory / 2**30 for n, m in known.items() if m.peak_memory},
            {n: row.memory_gb for n, row in paper.COMPARISON_3D.items()},
        ),
    )
    for axes, (label, values, published) in zip(figure.subplots(1, 2), panels, strict=True):
        for place, pair in enumerate(pairs):
            for name, kind, shift in zip(pair, ("3D", "AA"), (-0.2, 0.2), strict=True):
                axes.barh(place + shift, values[name], 0.36, color=_COLORS[kind])
            here, there = (value[pair[0]] / value[pair[1]] for value in (values, published))
            change = f"{here:.1f} × less" if here >= 1 else f"{1 / here:.1f} × more"
            text = f" {change} (paper {there:.1f} ×)"
            axes.text(values[pair[1]], place + 0.2, text, va="center", fontsize=9)
        axes.set_yticks(range(len(pairs)), [zoo.card(network).title for network, _ in pairs])
        axes.invert_yaxis()
        axes.set_xlabel(label)
        axes.set_xlim(0, max(values.values(), default=1) * 1.05)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            [f"with {what}" for what in ("3D convolutions", "adaptive aggregation")],
            frameon=False,
            fontsize=9,
        )
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _published_seconds() -> dict[str, float]:
    return {name: row.time_ms / 1000 for name, row in paper.COMPARISON_3D.items()}
