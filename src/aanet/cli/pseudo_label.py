"""`aanet pseudo-label`: predict pseudo ground truth for a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from aanet.cli.console import track
from aanet.cli.matching import MatcherOptions, Models, match_options
from aanet.cli.options import (
    ANY_MODEL,
    MATCHING,
    Dataset,
    Device,
    Engine,
    JsonOutput,
    MaxDisparity,
    NetworkSpec,
    Overwrite,
    Postprocess,
    Precision,
    Root,
    Scale,
    Split,
    Threads,
    Tile,
    refuse_existing,
)
from aanet.models.weights import files


def pseudo_label(
    dataset: Dataset,
    root: Root,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help=ANY_MODEL, rich_help_panel=MATCHING)
    ] = files.DEFAULT,
    split: Split = None,
    max_difference: Annotated[
        float,
        typer.Option(
            metavar="PIXELS", help="Maximum disparity difference in the left-right consistency check."
        ),
    ] = 1.0,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
    network_spec: NetworkSpec = None,
    max_disparity: MaxDisparity = None,
    scale: Scale = None,
    tile: Tile = "auto",
    postprocess: Postprocess = "auto",
    engine: Engine = None,
    precision: Precision = "auto",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Predict pseudo ground truth for a dataset.

    Only disparities that pass the left-right consistency check are kept. The maps are written into the folder
    of the dataset, and a recipe with pseudo_labels = true trains on them.

    Example: aanet pseudo-label kitti2015 data/kitti2015 --model aanet
    """
    import json

    from aanet.data.datasets import open_dataset
    from aanet.io.locking import locked_folder
    from aanet.training.pseudo_label import write_pseudo_labels

    opening = MatcherOptions(engine, precision, max_disparity, device, threads, network_spec)
    matching = match_options(scale, tile, postprocess, check=True, inspect=False)
    pairs = open_dataset(dataset, root, split)
    with locked_folder(pairs.root, f"Another process is writing pseudo ground truth into {pairs.root}."):
        refuse_existing(overwrite, *map(pairs.pseudo_label_path, range(len(pairs))))
        matcher, origin = Models({model: model}, opening, matching).open(model)
        written = write_pseudo_labels(matcher, pairs, max_difference, matching)
        labels = list(track(written, "Predicting", len(pairs)))
    if as_json:
        maps = [
            {
                "name": label.name,
                "path": str(label.path),
                "kept": label.kept,
                "processing": label.processing and label.processing.as_dict(),
            }
            for label in labels
        ]
        print(json.dumps({"origin": origin.as_dict(), "maps": maps}, indent=2))
        return
    kept = sum(label.kept for label in labels) / len(labels)
    print(f"Wrote {len(labels)} maps; {kept:.1%} of the pixels passed the left-right check.")
    for what, words in origin.lines(model, [label.processing for label in labels if label.processing]):
        print(f"{what}: {words}")
