"""`aanet benchmark`: time and memory of the networks, side by side with the paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.tables import new_table
from aanet.engines.table import ENGINES, network_engines
from aanet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aanet.benchmark.report import Presentation


def benchmark(
    networks: Annotated[
        list[str] | None,
        typer.Argument(help="Networks, weight files or sgbm; aanet, aanet_plus and stereonet_aa by default."),
    ] = None,
    engines: Annotated[
        str,
        typer.Option(
            help=f"Comma-separated: baseline, {', '.join(network_engines())}; or one of them with -bf16."
        ),
    ] = "baseline,torch,openvino",
    height: Annotated[int, typer.Option(min=1, help="Height of the images.")] = 576,
    width: Annotated[int, typer.Option(min=1, help="Width of the images.")] = 960,
    rounds: Annotated[int, typer.Option(min=1, help="Timed runs of each, in turn.")] = 5,
    memory: Annotated[
        bool, typer.Option(help="Measure the peak memory of each network in a process of its own.")
    ] = True,
    preset: Annotated[
        str | None,
        typer.Option(
            help="'paper': the eight networks of its table 2, on torch, at the largest size that fits; "
            "'scaling': cost against image size and disparity range."
        ),
    ] = None,
    training_step: Annotated[
        bool, typer.Option("--training-step", help="Time one training step instead (144×336, batch 2).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Also write the table as Markdown here, and as JSON beside it.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw what was measured here, beside the paper's figures.")
    ] = None,
) -> None:
    """Measure time and memory of the networks, interleaved, beside the paper's figures.

    'baseline' is the published way on a CPU: NCHW tensors, a loop over the disparity candidates, deformable
    convolution by grid_sample. Weights are random: they do not change the speed.
    """
    from aanet.engines.bf16_support import bf16_support

    # Broken AMX can only be switched off before the libraries are loaded.
    for name, card in ENGINES.items():
        asked = f"{name}-bf16" in engines.split(",") or (training_step and name == "torch")
        if asked and card.bf16 is not None:
            bf16_support(card.bf16)
    if training_step:
        _training_steps(networks or ["aanet"], rounds, as_json)
    elif preset == "scaling":
        _scaling((networks or ["aanet"])[0], engines.split(",")[-1], rounds, as_json, report, picture)
    elif preset == "paper":
        from aanet.benchmark import comparison
        from aanet.benchmark.presets import largest_common_size, paper_networks

        names = networks or paper_networks()
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

        names = networks or list(DEFAULT_NETWORKS)
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
    # Per model and engine: preparing, the warm-up and the rounds; per model: its memory.
    total = sum(len(engines_of(model, engines)) * (rounds + 2) + 1 for model in models)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=as_json) as progress:
        task = progress.add_task("measuring", total=total)
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
    """Write Markdown, and JSON beside it."""
    from aanet.io.atomic import atomic_path

    for target, text in ((path, markdown), (path.with_suffix(".json"), as_json + "\n")):
        with atomic_path(target) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _scaling(
    name: str, engine: str, rounds: int, as_json: bool, report: Path | None, picture: Path | None
) -> None:
    from dataclasses import asdict

    from rich.console import Console

    from aanet.benchmark.inference import conditions
    from aanet.benchmark.scaling import growth, markdown, measure_scaling, plot_scaling, rows
    from aanet.models import zoo

    zoo.card(name)
    if engine not in network_engines():
        known = " or ".join(network_engines())
        raise InputError(f"The cost against size is measured on {known}, not on {engine!r}.")
    with Console(stderr=True, quiet=as_json).status("measuring") as status:
        points = measure_scaling(name, engine, rounds, observe=status.update)
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
