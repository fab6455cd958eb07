"""`aanet data synthesize`: write a synthetic dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import progress_bar, track
from aanet.cli.on_ray import RayAddress, local_output
from aanet.cli.options import (
    ImageHeight,
    ImageWidth,
    Overwrite,
    SceneDisparity,
    Seed,
    Textures,
    refuse_existing,
)
from aanet.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aanet.synthetic import SyntheticWorld


def synthesize(
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder in which FlyingThings3D/ is created; with --ray also a URL.",
        ),
    ],
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="Number of pairs.")] = 100,
    seed: Seed = 0,
    height: ImageHeight = 288,
    width: ImageWidth = 576,
    max_disparity: SceneDisparity = 192,
    textures: Textures = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", "-j", metavar="N", min=1, help="Number of processes.", show_default="one per core"
        ),
    ] = None,
    overwrite: Overwrite = False,
    ray: RayAddress = None,
) -> None:
    """Render synthetic pairs and write them in the layout of Scene Flow.

    Each pair comes with exact disparity maps of both views. The folder can be read as the dataset sceneflow.

    Example: aanet data synthesize -n 1000 -o data/synthetic
    """
    from aanet.synthetic import SyntheticWorld

    world = SyntheticWorld((height, width), max_disparity, seed, textures, length=count)
    from aanet.io.locking import locked_folder

    if ray is not None:
        with progress_bar("Rendering pairs", count) as advance:
            _synthesize_on_ray(world, output, ray, workers, overwrite, advance)
        typer.echo(f"Wrote {count} pairs of {height}×{width} to {output}.")
        return
    root = local_output(output)
    folder = root / "FlyingThings3D"
    refuse_existing(overwrite, folder)
    with locked_folder(folder, f"Another process is writing into {folder}; choose another output."):
        refuse_existing(overwrite, *folder.glob("*"))  # which another process has written meanwhile
        for _ in track(_written(world, root, workers), "Rendering pairs", count):
            pass
    typer.echo(f"Wrote {count} pairs of {height}×{width} to {folder}.")


def _synthesize_on_ray(
    world: SyntheticWorld,
    output: str,
    address: str,
    workers: int | None,
    overwrite: bool,
    advance: Callable[[], None],
) -> None:
    from aanet.cluster.synthesis import synthesize as run
    from aanet.io import storage

    place = storage.absolute(output)
    if not overwrite and storage.exists(storage.join(place, "FlyingThings3D")):
        raise WriteError(
            f"{output}/FlyingThings3D already exists; choose another output, or add --overwrite."
        )

    def observe(count: int) -> None:
        for _ in range(count):
            advance()

    run(world, place, address, workers, observe)


def _written(world: SyntheticWorld, output: Path, workers: int | None) -> Iterator[int]:
    """Write all pairs, in one or several processes; yields each index when its files are complete."""
    import multiprocessing
    import os

    from aanet.synthetic.export import write_pair

    processes = min(workers or os.cpu_count() or 1, len(world))
    write_pair(world, 0, output)  # fails before any process starts if the folder is not writable
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
