"""`aanet data synthesize`: pairs of the procedural world as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aanet.synthetic import SyntheticWorld


def synthesize(
    output: Annotated[Path, typer.Argument(help="Folder to write into; FlyingThings3D is made in it.")],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many pairs.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed is another world.")] = 0,
    height: Annotated[int, typer.Option("--height", help="Height of the images.")] = 288,
    width: Annotated[int, typer.Option("--width", help="Width of the images.")] = 576,
    max_disparity: Annotated[int, typer.Option("--max-disparity", help="Every disparity is below it.")] = 192,
    textures: Annotated[
        Path | None,
        typer.Option("--textures", help="Folder of photographs; generated textures if not given."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-j", min=1, help="Processes; one per core if not given.")
    ] = None,
) -> None:
    """Write pairs of the procedural world in Scene Flow's layout, with the disparity of both views."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from aanet.synthetic import SyntheticWorld

    world = SyntheticWorld((height, width), max_disparity, seed, textures, length=count)
    columns = (TextColumn("pairs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as progress:
        for _ in progress.track(_written(world, output, workers), total=count):
            pass
    typer.echo(f"Wrote {count} pairs of {height}×{width} to {output / 'FlyingThings3D'}.")


def _written(world: SyntheticWorld, output: Path, workers: int | None) -> Iterator[int]:
    """Write all pairs, in this process if one is enough; yield each index when its files are there."""
    import multiprocessing
    import os

    from aanet.synthetic.export import write_pair

    processes = min(workers or os.cpu_count() or 1, len(world))
    write_pair(world, 0, output)  # alone: a folder that cannot be written fails before any process starts
    yield 0
    if processes == 1:
        for index in range(1, len(world)):
            write_pair(world, index, output)
            yield index
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _start, (world, output)) as pool:
        yield from pool.imap_unordered(_write, range(1, len(world)), chunksize=4)


_job: tuple[SyntheticWorld, Path]  # of this worker process; set once when it starts


def _start(world: SyntheticWorld, output: Path) -> None:
    from aanet.synthetic import prepare_worker

    global _job
    prepare_worker()
    _job = world, output


def _write(index: int) -> int:
    from aanet.synthetic.export import write_pair

    world, output = _job
    write_pair(world, index, output)
    return index
