"""`aanet benchmark`: time and memory of the networks, side by side with the paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.errors import AanetError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAPER_NETWORKS = [
    "stereonet",
    "stereonet_aa",
    "gcnet",
    "gcnet_aa",
    "psmnet",
    "psmnet_aa",
    "ganet",
    "ganet_aa",
]


def benchmark(
    networks: Annotated[
        list[str] | None,
        typer.Argument(help="Networks to run; aanet, aanet_plus and stereonet_aa by default."),
    ] = None,
    engines: Annotated[
        str, typer.Option(help="Comma-separated: baseline, torch, torch-bf16, openvino, openvino-bf16.")
    ] = "baseline,torch,openvino",
    height: Annotated[int, typer.Option(min=1, help="Height of the images.")] = 576,
    width: Annotated[int, typer.Option(min=1, help="Width of the images.")] = 960,
    rounds: Annotated[int, typer.Option(min=1, help="Timed runs of each, in turn.")] = 5,
    memory: Annotated[
        bool, typer.Option(help="Measure the peak memory of each network in a process of its own.")
    ] = True,
    preset: Annotated[
        str | None,
        typer.Option(help="'paper': the eight networks of the paper's table 2, at 288×480, on torch."),
    ] = None,
    training_step: Annotated[
        bool, typer.Option("--training-step", help="Time one training step instead (144×336, batch 2).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    report: Annotated[Path | None, typer.Option(help="Also write the table as Markdown here.")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw accuracy against time here, ours beside the paper's.")
    ] = None,
) -> None:
    """Measure time and memory of the networks, interleaved, beside the paper's figures.

    'baseline' is the published way on a CPU: NCHW tensors, a loop over the disparity candidates, deformable
    convolution by grid_sample. Weights are random: they do not change the speed.
    """
    if training_step:
        _training_steps(networks or ["aanet"], rounds, as_json)
        return
    names, chosen, size = networks or ["aanet", "aanet_plus", "stereonet_aa"], engines, (height, width)
    if preset == "paper":
        names, chosen, size = networks or _PAPER_NETWORKS, "torch", (288, 480)
    elif preset is not None:
        raise AanetError(f"The only preset is 'paper', not {preset!r}.")
    _predictions(names, chosen.split(","), size, rounds, memory, as_json, report, picture)


def _predictions(
    names: list[str],
    engines: list[str],
    size: tuple[int, int],
    rounds: int,
    memory: bool,
    as_json: bool,
    report: Path | None,
    picture: Path | None,
) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from aanet.benchmark import report as reports
    from aanet.benchmark.inference import ENGINES, conditions, measure
    from aanet.data.atomic import atomic_path
    from aanet.models import zoo

    for name in names:
        zoo.card(name)
    for engine in engines:
        if engine not in ENGINES:
            raise AanetError(f"There is no engine {engine!r} to measure; there are: {', '.join(ENGINES)}.")
    # Per network and engine: preparing, the warm-up and the rounds; per network: its memory.
    total = len(names) * (len(engines) * (rounds + 2) + 1)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=as_json) as progress:
        task = progress.add_task("measuring", total=total)
        measurements = measure(
            names,
            engines,
            size,
            rounds,
            memory,
            lambda what: progress.update(task, advance=1, description=what),
        )
    run = conditions(size, rounds)
    if report is not None:
        with atomic_path(report) as temporary:
            temporary.write_text(reports.markdown(measurements, run), encoding="utf-8")
    if picture is not None:
        reports.plot(measurements, run, picture)
    if as_json:
        rows = [each.as_dict() for each in measurements]
        typer.echo(json.dumps({"conditions": run.sentence(), "measurements": rows}, indent=2))
        return
    _print_table(reports.HEADINGS, reports.rows(measurements))
    for line in (run.sentence(), *reports.aggregation_speedups(measurements)):
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
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < 2 else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    Console().print(table)
