"""Reports of the load test: table, Markdown and chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aanet.benchmark.load import PAUSE, Level, growth, percentiles
from aanet.engines.processor import this_processor
from aanet.evaluation.markdown import table
from aanet.io.atomic import atomic_path

HEADINGS = (
    *("clients", "matched/s", "p50", "p99", "refused/s", "retry in", "failed", "probe p50", "max", "memory"),
)


def rows(levels: Sequence[Level]) -> list[tuple[str, ...]]:
    """Return the cells of one row per level, in the order of `HEADINGS`."""
    lines = []
    for each in levels:
        latency, probe = percentiles(each.latencies), percentiles(each.probes)
        refused = each.statuses.get("503", 0)
        failed = sum(each.statuses.values()) - refused - each.statuses.get("200", 0)
        wait = f"{min(each.retry_after)}–{max(each.retry_after)} s" if each.retry_after else "–"
        lines.append(
            (
                f"{each.clients}",
                f"{len(each.latencies) / each.seconds:.1f}",
                *(_seconds(latency[name]) for name in ("p50", "p99")),
                f"{refused / each.seconds:.0f}",
                wait,
                f"{failed}",
                *(_milliseconds(probe[name]) for name in ("p50", "max")),
                f"{max((amount for _, amount in each.memory), default=0) / 1e6:.0f} MB",
            )
        )
    return lines


def sentence(model: str, size: tuple[int, int], levels: Sequence[Level]) -> str:
    """Return the conditions as a sentence."""
    processor = this_processor().name
    return (
        f"{model}, pairs of {size[0]}×{size[1]}, {levels[0].seconds:.0f} s per row on {processor}; server, "
        f"clients and probe share the machine, and refused clients ask again after about {PAUSE:g} s."
    )


def growth_sentence(level: Level) -> str:
    """Return how the memory of a soak test changed, as a sentence."""
    hours = level.seconds / 3600
    duration = f"{hours:.1f} hours" if hours >= 1 else f"{level.seconds / 60:.1f} minutes"
    matched = len(level.latencies)
    return f"Memory changed by {100 * growth(level):+.1f} % in {duration} and {matched} matched pairs."


def markdown(levels: Sequence[Level], *sentences: str) -> str:
    """Return the report as Markdown."""
    return "\n".join([*table(HEADINGS, rows(levels)), "", *sentences]) + "\n"


def plot(levels: Sequence[Level], title: str, path: Path) -> None:
    """Draw rates and latencies against the number of clients, and memory over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    figure.suptitle(title, fontsize=11)
    rates, latencies, memory = figure.subplots(1, 3)
    names = [f"{each.clients}" for each in levels]
    rates.plot(names, [len(each.latencies) / each.seconds for each in levels], "o-", label="matched")
    rates.plot(names, [each.statuses.get("503", 0) / each.seconds for each in levels], "s--", label="refused")
    rates.set_ylabel("requests per second")
    rates.set_yscale("symlog", linthresh=1)
    rates.set_ylim(bottom=0)
    for share, style in (("p50", "o-"), ("p99", "o--")):
        matched = [percentiles(each.latencies)[share] for each in levels]
        latencies.plot(names, matched, style, color="C0", label=f"matched, {share}")
        probes = [percentiles(each.probes)[share] for each in levels]
        latencies.plot(names, probes, style, color="C2", label=f"probe, {share}")
    latencies.set_yscale("log")
    latencies.set_ylim(top=10 * latencies.get_ylim()[1])  # room for the legend
    latencies.set_ylabel("seconds")
    begin = 0.0
    for index, each in enumerate(levels):
        times = [begin + moment for moment, _ in each.memory]
        memory.plot(times, [amount / 1e6 for _, amount in each.memory], color=f"C{index}", label=names[index])
        begin += each.seconds
    memory.set_ylim(0, 1.15 * memory.get_ylim()[1])
    memory.set_xlabel("seconds")
    memory.set_ylabel("memory of the server, MB")
    for axes in (rates, latencies):
        axes.set_xlabel("clients")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    memory.legend(frameon=False, fontsize=9, loc="lower left", title="clients")
    for axes in (rates, latencies, memory):
        axes.grid(alpha=0.3)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{1000 * value:.0f} ms"
