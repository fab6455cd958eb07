"""The measurements of `aanet benchmark`: each measures, writes its report and prints its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from aanet.cli.console import progress_bar, shows_progress, status
from aanet.cli.matching import MatcherOptions, Models
from aanet.cli.tables import new_table
from aanet.engines.table import network_engines
from aanet.errors import AanetError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aanet.benchmark.report import Presentation
    from aanet.inference.options import MatchOptions

MAX_GROWTH = 0.05  # share by which the memory may grow in a soak test; allocators fluctuate


def time_predictions(
    names: list[str],
    engines: list[str],
    size: tuple[int, int],
    rounds: int,
    memory: bool,
    opening: MatcherOptions,
    as_json: bool,
    report: Path | None,
    picture: Path | None,
    presentation: Presentation,
) -> None:
    """Time networks on engines, and measure their memory."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from aanet.benchmark.inference import conditions, engine_choices, engines_of, measure
    from aanet.benchmark.models import find_models
    from aanet.benchmark.report import aggregation_speedups

    models = find_models(names, opening.max_disparity, opening.network_spec)
    for engine in engines:
        if engine not in engine_choices():
            raise InputError(
                f"There is no engine {engine!r} to measure; there are: {', '.join(engine_choices())}."
            )
    # Per model and engine: preparation, warm-up and rounds; per model: its memory.
    total = sum(len(engines_of(model, engines)) * (rounds + 2) + 1 for model in models)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not shows_progress()) as progress:
        task = progress.add_task("Measuring", total=total)
        measurements = measure(
            models,
            engines,
            size,
            rounds,
            memory,
            lambda what: progress.update(task, advance=1, description=what),
            device=opening.device,
            threads=opening.threads,
        )
    run = conditions(size, rounds, opening.threads, [each.engine for each in measurements])
    rows = [each.as_dict() for each in measurements]
    text = json.dumps({"conditions": run.sentence(), "measurements": rows}, indent=2)
    if report is not None:
        write_report(report, presentation.markdown(measurements, run), text)
    if picture is not None:
        presentation.plot(measurements, run, picture)
    if as_json:
        typer.echo(text)
        return
    print_table(presentation.HEADINGS, presentation.rows(measurements))
    for line in (run.sentence(), *aggregation_speedups(measurements)):
        typer.echo(line)


def write_report(path: Path, markdown: str, as_json: str) -> None:
    """Write the report as Markdown and as JSON."""
    from aanet.io.atomic import atomic_path

    for target, text in ((path, markdown), (path.with_suffix(".json"), as_json + "\n")):
        with atomic_path(target) as temporary:
            temporary.write_text(text, encoding="utf-8")


def time_sizes(
    name: str, engine: str, rounds: int, as_json: bool, report: Path | None, picture: Path | None
) -> None:
    """Measure how time and memory of a network grow with the image and the disparity range."""
    from dataclasses import asdict

    from aanet.benchmark.inference import conditions
    from aanet.benchmark.scaling import growth, markdown, measure_scaling, plot_scaling, rows
    from aanet.models import zoo

    zoo.card(name)
    if engine not in network_engines():
        known = " or ".join(network_engines())
        raise InputError(f"The cost against size is measured on {known}, not on {engine!r}.")
    with status("Measuring") as shown:
        points = measure_scaling(name, engine, rounds, observe=shown.update)
    text = json.dumps([asdict(point) for point in points], indent=2)
    if report is not None:
        write_report(report, markdown(points), text)
    if picture is not None:
        machine = conditions((0, 0), rounds)
        title = f"{zoo.card(name).title} on {engine}, {machine.threads} threads of {machine.processor}"
        plot_scaling(points, title, picture)
    if as_json:
        typer.echo(text)
        return
    print_table(("size", "range", "seconds", "peak mem."), rows(points))
    for line in growth(points):
        typer.echo(line)


class Data(NamedTuple):
    """The pairs on which errors are measured, as the user names them."""

    pairs: str
    limit: int | None
    split: str | None
    options: list[str]


def plot_error_against_time(
    models: list[str] | None,
    data: Data,
    scales: str,
    rounds: int,
    opening: MatcherOptions,
    matching: MatchOptions,
    as_json: bool,
    report: Path | None,
    picture: Path | None,
) -> None:
    """Score and time matchers at several scales."""
    from aanet.benchmark import accuracy
    from aanet.benchmark.accuracy_chart import plot_accuracy
    from aanet.benchmark.presets import DEFAULT_MATCHERS
    from aanet.data.datasets import parse_options
    from aanet.engines.processor import this_processor
    from aanet.evaluation.naming import name_models
    from aanet.evaluation.origin import thread_count

    factors = accuracy.parse_scales(scales)
    pairs = accuracy.open_pairs(data.pairs, data.limit, data.split, parse_options(data.options))
    named = Models(name_models(models or list(DEFAULT_MATCHERS)), opening, matching)
    with status("Opening the models"):
        opened = {name: named.open(name) for name in named.sources}
    matchers = {name: matcher for name, (matcher, _) in opened.items()}
    origins = {name: origin for name, (_, origin) in opened.items()}
    candidates = sum(len(accuracy.scales_for(matcher, factors)) for matcher in matchers.values())
    with progress_bar("Matching", candidates * (1 + rounds * len(pairs.indices))) as advance:
        measured = accuracy.measure_accuracy(matchers, factors, pairs, rounds, advance, matching)
    machine = f"{thread_count(opening.threads)} threads of {this_processor().name}"
    run = f"median of {rounds} interleaved rounds after a warm-up, {machine}"
    text = json.dumps(accuracy.as_dict(measured, origins, pairs, run), indent=2)
    if report is not None:
        write_report(report, accuracy.markdown(measured, origins, pairs, run), text)
    if picture is not None:
        plot_accuracy(measured.points, pairs, machine, picture)
    if as_json:
        typer.echo(text)
        return
    print_table(accuracy.HEADINGS, accuracy.rows(measured.points))
    for what, words in accuracy.protocol_lines(measured, origins, pairs, run):
        typer.echo(f"{what}: {words}")


def load_server(
    model: str,
    size: tuple[int, int],
    clients: str,
    seconds: float,
    soak: float | None,
    as_json: bool,
    report: Path | None,
) -> None:
    """Measure a server under load."""
    from aanet.benchmark import load, load_report

    numbers = [int(each) if each.isdecimal() else 0 for each in clients.split(",")]
    levels, duration = (numbers, seconds) if soak is None else ([load.SOAK_CLIENTS], 60 * soak)
    with status("Starting the server") as shown, load.start_server(model) as server:
        measured = load.measure(server, load.make_request(*size), levels, duration, shown.update)
    sentences = [load_report.sentence(model, size, measured)]
    if soak is not None:
        sentences.append(load_report.growth_sentence(measured[0]))
    text = json.dumps({"conditions": sentences[0], "levels": [each.as_dict() for each in measured]}, indent=2)
    if report is not None:
        write_report(report, load_report.markdown(measured, *sentences), text)
        load_report.plot(measured, sentences[0], report.with_name("chart.png"))
    if as_json:
        typer.echo(text)
    else:
        print_table(load_report.HEADINGS, load_report.rows(measured))
        for line in sentences:
            typer.echo(line)
    if soak is not None and load.growth(measured[0]) > MAX_GROWTH:
        raise AanetError("The memory of the server grew.")


def time_training_steps(names: list[str], rounds: int, as_json: bool) -> None:
    """Time training steps of networks."""
    from dataclasses import asdict

    from aanet.benchmark.training import benchmark_training_step

    results = {name: benchmark_training_step(name, rounds=rounds) for name in names}
    if as_json:
        rows = {name: [asdict(step) for step in steps] for name, steps in results.items()}
        typer.echo(json.dumps(rows, indent=2))
        return
    lines = [
        (name, step.variant, f"{step.seconds:.2f} s", f"{step.speedup:.2f}")
        for name, steps in results.items()
        for step in steps
    ]
    print_table(("network", "variant", "one step", "× first"), lines)


def print_table(headings: Sequence[str], lines: Sequence[tuple[str, ...]]) -> None:
    """Print a table whose first two columns are text."""
    from rich.console import Console

    table = new_table(headings[:2], headings[2:])
    for line in lines:
        table.add_row(*line)
    Console().print(table)
