"""The option --ray: the same work on a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aanet.cli.console import shows_progress, status
from aanet.cli.measurements import print_table, write_report
from aanet.errors import InputError
from aanet.io.storage import local_path

if TYPE_CHECKING:
    from aanet.prediction.outcome import Summary

MILLION = 1_000_000
CLUSTER = "Cluster"  # title under which the help groups these options

RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|local|HOST:PORT",
        help="Work on a Ray cluster: auto: the one of this machine; local: a new one on this machine; or its "
        "address.",
        show_default="this process alone",
        rich_help_panel=CLUSTER,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "-j",
        metavar="N",
        min=1,
        help="Number of workers on the cluster, with --threads threads each (by default 1).",
        show_default="as many as it has cores for",
        rich_help_panel=CLUSTER,
    ),
]


def refuse(options: dict[str, Any]) -> None:
    """Refuse options that were given although they do not go with --ray."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{' and '.join(given)} cannot be combined with --ray.")


def local_output(output: str) -> Path:
    """The folder of an output on this machine."""
    folder = local_path(output)
    if folder is None:
        raise InputError(f"{output} is a URL; without --ray, the output is a folder.")
    return folder


def predict_list(
    left: str,
    right: str | None,
    settings: tuple[Any, ...],
    address: str,
    workers: int | None,
    resume: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Match a list on a cluster, and print the outcome.

    Args:
        left: The list, or what else `aanet predict` takes.
        right: The right side, if it is apart.
        settings: The fields of `aanet.cluster.prediction.Settings`.
        address: Of the cluster.
        workers: How many.
        resume: Go on with the manifest.
        overwrite: Replace it.
        as_json: Whether to print JSON.
    """
    from aanet.cluster.prediction import Settings
    from aanet.cluster.run import predict_list as run
    from aanet.cluster.work_list import open_list

    work, chosen = open_list(left, right), Settings(*settings)
    for file in work.unmatched:
        print(f"aanet: {file} has no partner and is skipped.", file=sys.stderr)
    # What Ray prints about nodes that died must not be mixed with the result.
    with redirect_stdout(sys.stderr), cluster_progress("Matching", work.total) as observe:
        summary = run(
            work, chosen, address, workers=workers, resume=resume, overwrite=overwrite, observe=observe
        )
    _report(summary, str(chosen.output), as_json)
    if summary.interrupted:
        raise typer.Exit(130)
    if summary.failed:
        raise typer.Exit(2)


@contextmanager
def cluster_progress(description: str, total: int) -> Iterator[Callable[[Summary], None]]:
    """Show a bar with speed, time left and failures on a terminal; the block tells what has been done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failures]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not shows_progress()) as progress:
        task = progress.add_task(description, total=total, speed="", failures="")

        def observe(summary: Summary) -> None:
            failed = summary.failed - len(summary.unmatched)
            rate = progress.tasks[0].speed
            progress.update(
                task,
                completed=summary.skipped + summary.matched + failed,
                speed=f"{rate:.1f} pairs/s" if rate else "",
                failures=f"{failed} failed" if failed else "",
            )

        yield observe


def _report(summary: Summary, output: str, as_json: bool) -> None:
    if as_json:
        facts = {key: value for key, value in asdict(summary).items() if key not in ("pairs", "videos")}
        print(json.dumps({"output": output, **facts}, indent=2))
        return
    parts = [f"{summary.matched} matched"]
    parts += [f"{summary.skipped} were in the manifest"] if summary.skipped else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    if summary.matched:
        rate = summary.matched / summary.wall_seconds
        parts.append(f"{summary.matching_seconds / summary.matched:.2f} s each, {rate:.2f} pairs per second")
    print(f"{output}: {', '.join(parts)}; the manifest names each pair and its errors.")
    if summary.interrupted:
        print("Interrupted; finished pairs are in the manifest, and --resume continues with the others.")


def compare(
    model: str, size: tuple[int, int], pairs: int, address: str, as_json: bool, report: Path | None
) -> None:
    """Measure `aanet predict` with and without Ray, and compute what many hosts would cost."""
    from aanet.cluster import benchmark, cost
    from aanet.evaluation.markdown import table

    with status("Measuring") as shown:
        measured = benchmark.compare(model, size, pairs, address, shown.update)
    costs = [cost.cost(measured.measured, MILLION, hosts) for hosts in (1, 10, 100)]
    text = json.dumps({**measured.as_dict(), "million": [asdict(each) for each in costs]}, indent=2)
    sentence = (
        f"{model}: {pairs} pairs of {size[0]}×{size[1]}, one thread per worker; with Ray, a pair takes "
        f"{measured.overhead:+.1%}, and two workers are {measured.speedup:.2f} times as fast as one."
    )
    tables = ((benchmark.HEADINGS, measured.rows()), (cost.HEADINGS, cost.rows(costs)))
    if report is not None:
        parts = (sentence, *("\n".join(table(*each)) for each in tables))
        write_report(report, "\n\n".join(parts) + "\n", text)
    if as_json:
        typer.echo(text)
        return
    for headings, lines in tables:
        print_table(headings, lines)
    typer.echo(sentence)
