"""`aanet benchmark`: time and memory of the networks, beside the paper's figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import shows_progress, status
from aanet.cli.options import ImageHeight, ImageWidth, JsonOutput, Overwrite, refuse_existing
from aanet.cli.tables import new_table
from aanet.engines.table import ENGINES, network_engines
from aanet.errors import AanetError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aanet.benchmark.report import Presentation

SERVER = "Load test of the server"
MAX_GROWTH = 0.05  # share by which the memory may grow in a soak test; allocators fluctuate


def benchmark(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Networks, weight files or sgbm. NAME=MODEL gives a name for the table.",
            show_default="aanet aanet_plus stereonet_aa",
        ),
    ] = None,
    engines: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"Comma-separated engines: baseline, {', '.join(network_engines())}, or one of the latter "
            "followed by -bf16.",
        ),
    ] = "baseline,torch,openvino",
    height: ImageHeight = 576,
    width: ImageWidth = 960,
    rounds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of timed predictions per network and engine.")
    ] = 5,
    memory: Annotated[
        bool, typer.Option(help="Measure the peak memory of each network, in a separate process.")
    ] = True,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="paper|scaling",
            help="paper: the eight networks of the paper's table 2, with torch, at the largest size that "
            "fits into memory. scaling: one network at several image sizes and disparity ranges.",
        ),
    ] = None,
    training_step: Annotated[
        bool,
        typer.Option(
            "--training-step", help="Time training steps (crop 144×336, batch 2) instead of predictions."
        ),
    ] = False,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Start `aanet serve` with one model on this machine and measure it under load.",
            rich_help_panel=SERVER,
        ),
    ] = False,
    clients: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS", help="Comma-separated numbers of clients, at most 250.", rich_help_panel=SERVER
        ),
    ] = "1,16,64,200",
    seconds: Annotated[
        float,
        typer.Option(
            metavar="N", min=0.5, max=600, help="Seconds per number of clients.", rich_help_panel=SERVER
        ),
    ] = 10.0,
    soak: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            min=0.01,
            max=600,
            help="Instead, let 16 clients ask for this long; fails if the memory grows by more than 5 %.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Also write report.md, report.json and chart.png here."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
) -> None:
    """Measure time and memory of the networks.

    The runs are interleaved, and the results are shown beside the figures of the paper. The engine baseline
    computes as the published code does on a CPU: NCHW tensors, a loop over the disparity candidates, and
    deformable convolution by grid_sample. Networks have random weights, which do not affect the speed.

    With --serve, a server is measured instead: matched and refused requests, latency, probes and memory at
    several numbers of clients.

    Example: aanet benchmark aanet stereonet_aa --height 480 --width 640
    """
    report, picture = (output / "report.md", output / "chart.png") if output else (None, None)
    if output is not None:
        refuse_existing(overwrite, output / "report.md", output / "report.json", output / "chart.png")
    if serve:
        _under_load((models or ["aanet"])[0], (height, width), clients, seconds, soak, as_json, report)
        return
    from aanet.engines.bf16_support import bf16_support

    # Broken AMX can only be disabled before the libraries are imported.
    for name, card in ENGINES.items():
        asked = f"{name}-bf16" in engines.split(",") or (training_step and name == "torch")
        if asked and card.bf16 is not None:
            bf16_support(card.bf16)
    if training_step:
        _training_steps(models or ["aanet"], rounds, as_json)
    elif preset == "scaling":
        _scaling((models or ["aanet"])[0], engines.split(",")[-1], rounds, as_json, report, picture)
    elif preset == "paper":
        from aanet.benchmark import comparison
        from aanet.benchmark.presets import largest_common_size, paper_networks

        names = models or paper_networks()
        for name in names:
            if name not in paper_networks():
                raise InputError(
                    f"{name} is not in the paper's table; there are: {', '.join(paper_networks())}."
                )
        size = largest_common_size()
        _predictions(names, ["torch"], size, rounds, memory, as_json, report, picture, comparison)
    elif preset is None:
        from aanet.benchmark import report as by_engine
        from aanet.benchmark.presets import DEFAULT_NETWORKS

        names = models or list(DEFAULT_NETWORKS)
        size = (height, width)
        _predictions(names, engines.split(","), size, rounds, memory, as_json, report, picture, by_engine)
    else:
        raise InputError(f"The presets are 'paper' and 'scaling', not {preset!r}.")


def _predictions(
    names: list[str],
    engines: list[str],
    size: tuple[int, int],
    rounds: int,
    memory: bool,
    as_json: bool,
    report: Path | None,
    picture: Path | None,
    presentation: Presentation,
) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from aanet.benchmark.inference import conditions, engine_choices, engines_of, measure
    from aanet.benchmark.models import find_models
    from aanet.benchmark.report import aggregation_speedups

    models = find_models(names)
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
        )
    run = conditions(size, rounds)
    rows = [each.as_dict() for each in measurements]
    text = json.dumps({"conditions": run.sentence(), "measurements": rows}, indent=2)
    if report is not None:
        _write_report(report, presentation.markdown(measurements, run), text)
    if picture is not None:
        presentation.plot(measurements, run, picture)
    if as_json:
        typer.echo(text)
        return
    _print_table(presentation.HEADINGS, presentation.rows(measurements))
    for line in (run.sentence(), *aggregation_speedups(measurements)):
        typer.echo(line)


def _write_report(path: Path, markdown: str, as_json: str) -> None:
    """Write the report as Markdown and as JSON."""
    from aanet.io.atomic import atomic_path

    for target, text in ((path, markdown), (path.with_suffix(".json"), as_json + "\n")):
        with atomic_path(target) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _scaling(
    name: str, engine: str, rounds: int, as_json: bool, report: Path | None, picture: Path | None
) -> None:
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
        _write_report(report, markdown(points), text)
    if picture is not None:
        machine = conditions((0, 0), rounds)
        title = f"{zoo.card(name).title} on {engine}, {machine.threads} threads of {machine.processor}"
        plot_scaling(points, title, picture)
    if as_json:
        typer.echo(text)
        return
    _print_table(("size", "range", "seconds", "peak mem."), rows(points))
    for line in growth(points):
        typer.echo(line)


def _under_load(
    model: str,
    size: tuple[int, int],
    clients: str,
    seconds: float,
    soak: float | None,
    as_json: bool,
    report: Path | None,
) -> None:
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
        _write_report(report, load_report.markdown(measured, *sentences), text)
        load_report.plot(measured, sentences[0], report.with_name("chart.png"))
    if as_json:
        typer.echo(text)
    else:
        _print_table(load_report.HEADINGS, load_report.rows(measured))
        for line in sentences:
            typer.echo(line)
    if soak is not None and load.growth(measured[0]) > MAX_GROWTH:
        raise AanetError("The memory of the server grew.")


def _training_steps(names: list[str], rounds: int, as_json: bool) -> None:
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
    _print_table(("network", "variant", "one step", "× first"), lines)


def _print_table(headings: Sequence[str], lines: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console

    table = new_table(headings[:2], headings[2:])
    for line in lines:
        table.add_row(*line)
    Console().print(table)
