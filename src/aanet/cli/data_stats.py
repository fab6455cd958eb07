"""`aanet data stats`: statistics of a dataset's disparities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aanet.cli.console import track
from aanet.cli.options import Dataset, DatasetOptions, JsonOutput, Overwrite, Root, Split, refuse_existing


def stats(
    dataset: Dataset,
    root: Root,
    split: Split = None,
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Maximum number of pairs, evenly spaced over the split."),
    ] = 200,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also write the histogram as an image.", show_default=False
        ),
    ] = None,
    option: DatasetOptions = None,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
) -> None:
    """Print statistics of a dataset's ground truth.

    The output has the image sizes, a histogram of the disparities, and the shares of known and occluded
    pixels.

    Example: aanet data stats sceneflow data/sceneflow --limit 50
    """
    if output is not None:
        refuse_existing(overwrite, output)
    import json

    from aanet.data.datasets import open_dataset, parse_options
    from aanet.data.statistics import disparity_statistics, draw_histogram, histogram_lines
    from aanet.evaluation.report import spread

    pairs = open_dataset(dataset, root, split, **parse_options(option or []))
    indices = spread(len(pairs), limit)
    statistics = disparity_statistics(pairs, track(indices, "Reading ground truth", len(indices)))
    if output is not None:
        draw_histogram(output, statistics)
    if as_json:
        print(json.dumps(statistics.as_dict(), indent=2))
        return
    sizes = ", ".join(f"{size} ({count})" for size, count in sorted(statistics.sizes.items())[:6])
    print(f"{dataset}, split {pairs.split}: {statistics.pairs} of {len(pairs)} pairs read")
    print(f"sizes      {sizes}{' …' if len(statistics.sizes) > 6 else ''}")
    print(f"disparity  mean {statistics.mean:.1f} px, largest {statistics.largest:.1f} px")
    print(f"           {statistics.beyond(192):.2f} % at or beyond 192 px")
    occluded = "" if statistics.occluded is None else f", of these {100 * statistics.occluded:.1f} % occluded"
    print(f"known      {100 * statistics.known:.1f} % of the pixels{occluded}")
    print()
    print("\n".join(histogram_lines(statistics)))
    if output is not None:
        print(f"\nWrote {output}.")
