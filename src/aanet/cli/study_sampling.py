"""`aanet study sampling`: measure where adaptive aggregation samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import track
from aanet.cli.options import Dataset, DatasetOptions, JsonOutput, Root, Split
from aanet.cli.tables import new_table

if TYPE_CHECKING:
    from aanet.evaluation.sampling_study import SamplingStudy

TITLES = {"adaptive": "adaptive", "regular": "regular window", "widened": "regular window, as wide"}


def sampling(
    dataset: Dataset,
    root: Root,
    split: Split = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="A bundled model with adaptive aggregation, or the weight file of one."
        ),
    ] = "aanet",
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Maximum number of pairs, evenly spaced over the split."),
    ] = 25,
    option: DatasetOptions = None,
    as_json: JsonOutput = False,
) -> None:
    """Measure where adaptive aggregation samples, at edges and in textureless areas.

    The paper's figure shows that sampling points stay on the surface of their pixel at object boundaries, and
    spread out in textureless areas. Both are measured on pairs with dense ground truth, beside the regular
    window of an ordinary convolution, and beside one that reaches as far as the adaptive points.

    Example: aanet study sampling middlebury2006 data/middlebury --limit 10
    """
    import json

    from aanet.data.datasets import open_dataset, parse_options
    from aanet.evaluation.report import spread
    from aanet.evaluation.sampling_study import study_sampling
    from aanet.export.sources import open_network

    pairs = open_dataset(dataset, root, split, **parse_options(option or []))
    network = open_network(model).network
    indices = spread(len(pairs), limit)
    measured = study_sampling(network, (pairs[index] for index in track(indices, "Measuring", len(indices))))
    if as_json:
        print(json.dumps({"model": model, "pairs": len(indices), **measured.as_dict()}, indent=2))
        return
    print(f"{model} on {len(indices)} pairs of {dataset}, split {pairs.split}\n")
    _print_table(measured)


def _print_table(measured: SamplingStudy) -> None:
    """Print the regions one below the other, each with the adaptive points and both regular windows."""
    from rich.console import Console

    from aanet.evaluation.sampling_study import REGIONS

    kinds = measured.as_dict()
    table = new_table(["region", "points"], ["on the surface", "reach in px"])
    for region in REGIONS:
        for kind, values in kinds.items():
            share, distance = values[region]["on_surface"], values[region]["distance"]
            cells = ("–", "–") if share is None else (f"{share:.1f} %", f"{distance:.1f}")
            table.add_row(region, TITLES[kind], *cells)
    Console().print(table)
