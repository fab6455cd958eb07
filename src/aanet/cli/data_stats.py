"""`aanet data stats`: statistics of a dataset's disparities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from aanet.cli.data_check import NAMES


def stats(
    name: Annotated[str, typer.Argument(help=f"The dataset: {NAMES}.")],
    root: Annotated[Path, typer.Argument(help="Its folder.")],
    split: Annotated[str | None, typer.Option(help="The split; by default, the dataset's first.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Maximum number of pairs, evenly spaced over the split.")
    ] = 200,
    picture: Annotated[Path | None, typer.Option(help="Also write the histogram as an image.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the dataset, such as render=cleanpass.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Print the histogram of a dataset's disparities and the shares of known and occluded pixels."""
    import json

    from aanet.data.datasets import open_dataset, parse_options
    from aanet.data.statistics import disparity_statistics, draw_histogram, histogram_lines
    from aanet.evaluation.report import spread

    dataset = open_dataset(name, root, split, **parse_options(option or []))
    indices = spread(len(dataset), limit)
    console = Console(stderr=True)
    statistics = disparity_statistics(
        dataset, track(indices, "Reading ground truth", console=console, transient=True)
    )
    if picture is not None:
        draw_histogram(picture, statistics)
    if as_json:
        print(json.dumps(statistics.as_dict(), indent=2))
        return
    sizes = ", ".join(f"{size} ({count})" for size, count in sorted(statistics.sizes.items())[:6])
    print(f"{name}, split {dataset.split}: {statistics.pairs} of {len(dataset)} pairs read")
    print(f"sizes      {sizes}{' …' if len(statistics.sizes) > 6 else ''}")
    print(f"disparity  mean {statistics.mean:.1f} px, largest {statistics.largest:.1f} px")
    print(f"           {statistics.beyond(192):.2f} % at or beyond 192 px")
    occluded = "" if statistics.occluded is None else f", of these {100 * statistics.occluded:.1f} % occluded"
    print(f"known      {100 * statistics.known:.1f} % of the pixels{occluded}")
    print()
    print("\n".join(histogram_lines(statistics)))
    if picture is not None:
        print(f"\nPicture: {picture}")
