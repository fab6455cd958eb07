"""`aanet pseudo-label`: predict pseudo ground truth for a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from aanet.cli.data_check import NAMES


def pseudo_label(
    dataset: Annotated[str, typer.Argument(help=f"The dataset: {NAMES}.")],
    root: Annotated[Path, typer.Argument(help="Its folder.")],
    model: Annotated[
        str, typer.Option(help="A network with bundled weights, a file of weights, or sgbm.")
    ] = "aanet",
    split: Annotated[str | None, typer.Option(help="Which split; the first one if not given.")] = None,
    max_difference: Annotated[
        float, typer.Option(help="Largest difference in pixels between the two views' disparities.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a summary.")] = False,
) -> None:
    """Predict disparity for a dataset and keep what passes the left-right check.

    The maps are written where the dataset's reader looks for pseudo ground truth; a recipe uses them with
    pseudo_labels = true.
    """
    import json

    from aanet.data.datasets import open_dataset
    from aanet.matcher import StereoMatcher
    from aanet.training.pseudo_label import write_pseudo_labels

    pairs = open_dataset(dataset, root, split)
    written = write_pseudo_labels(StereoMatcher(model), pairs, max_difference)
    progress = Console(stderr=True)
    labels = list(track(written, "Predicting", total=len(pairs), console=progress))
    if as_json:
        facts = [{"name": label.name, "path": str(label.path), "kept": label.kept} for label in labels]
        print(json.dumps(facts, indent=2))
        return
    kept = sum(label.kept for label in labels) / len(labels)
    print(f"Wrote {len(labels)} maps; {kept:.1%} of the pixels passed the left-right check.")
