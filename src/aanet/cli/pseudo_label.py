"""`aanet pseudo-label`: predict pseudo ground truth for a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from aanet.cli.console import track
from aanet.cli.options import ANY_MODEL, Dataset, JsonOutput, Overwrite, Root, Split, refuse_existing
from aanet.models.weights import files


def pseudo_label(
    dataset: Dataset,
    root: Root,
    model: Annotated[str, typer.Option(metavar="MODEL", help=ANY_MODEL)] = files.DEFAULT,
    split: Split = None,
    max_difference: Annotated[
        float,
        typer.Option(
            metavar="PIXELS", help="Maximum disparity difference in the left-right consistency check."
        ),
    ] = 1.0,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
) -> None:
    """Predict pseudo ground truth for a dataset.

    Only disparities that pass the left-right consistency check are kept. The maps are written into the folder
    of the dataset, and a recipe with pseudo_labels = true trains on them.

    Example: aanet pseudo-label kitti2015 data/kitti2015 --model aanet
    """
    import json

    from aanet.data.datasets import open_dataset
    from aanet.io.locking import locked_folder
    from aanet.matcher import StereoMatcher
    from aanet.training.pseudo_label import write_pseudo_labels

    pairs = open_dataset(dataset, root, split)
    with locked_folder(pairs.root, f"Another process is writing pseudo ground truth into {pairs.root}."):
        refuse_existing(overwrite, *map(pairs.pseudo_label_path, range(len(pairs))))
        written = write_pseudo_labels(StereoMatcher(model), pairs, max_difference)
        labels = list(track(written, "Predicting", len(pairs)))
    if as_json:
        facts = [{"name": label.name, "path": str(label.path), "kept": label.kept} for label in labels]
        print(json.dumps(facts, indent=2))
        return
    kept = sum(label.kept for label in labels) / len(labels)
    print(f"Wrote {len(labels)} maps; {kept:.1%} of the pixels passed the left-right check.")
