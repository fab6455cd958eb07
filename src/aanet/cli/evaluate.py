"""`aanet evaluate`: score models on a dataset, side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from aanet.cli.console import progress_bar
from aanet.cli.matching import MatcherOptions, Models, match_options
from aanet.cli.on_ray import RayAddress, Workers, refuse
from aanet.cli.options import (
    ANY_MODEL,
    MATCHING,
    DatasetOptions,
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
    Threads,
    Tile,
    refuse_existing,
)
from aanet.cli.scoring import Scoring
from aanet.cli.tables import new_table
from aanet.cli.zero_shot import Shown, evaluate_zero_shot, refuse_options
from aanet.data.datasets import DATASETS
from aanet.errors import InputError
from aanet.models.weights import files

if TYPE_CHECKING:
    from aanet.data.datasets import StereoDataset
    from aanet.evaluation import Evaluation

ZERO_SHOT = "zero-shot"
_NAMES = (*DATASETS, ZERO_SHOT)


def _complete(incomplete: str) -> list[str]:
    return [name for name in _NAMES if name.startswith(incomplete)]


def evaluate(
    dataset: Annotated[
        str,
        typer.Argument(
            help=f"The dataset: {', '.join(DATASETS)}; or {ZERO_SHOT}: the benchmarks in one folder.",
            autocompletion=_complete,
        ),
    ],
    root: Root,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help=f"{ANY_MODEL} NAME=MODEL gives a name for tables and reports. May be repeated.",
            show_default=files.DEFAULT,
            rich_help_panel=MATCHING,
        ),
    ] = None,
    predictions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="Also score disparity maps that another program wrote (PFM, 16-bit PNG, NPY), matched to "
            "the pairs by name; without --model, only these. May be repeated.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse --predictions if a map is missing or cannot be used, instead of scoring the others.",
        ),
    ] = False,
    split: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Split of the dataset.", show_default="the benchmark's own"),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of pairs, evenly spaced over the split.",
            show_default="all",
        ),
    ] = None,
    option: DatasetOptions = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Also write report.md, with error maps, and report.json here.",
        ),
    ] = None,
    pictures: Annotated[
        int,
        typer.Option(
            "--error-maps", metavar="N", min=0, help="Number of error maps per model in the report."
        ),
    ] = 4,
    submission: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Instead of scoring, write the ZIP file to upload to the benchmark's server."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the method in the submission.")
    ] = "AANet",
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
    ray: RayAddress = None,
    workers: Workers = None,
) -> None:
    """Evaluate one or several models on a dataset.

    The metrics are those of the dataset's benchmark and are shown beside the numbers of the paper, with the
    protocol: what was done to the images, the engine, and all versions. The network alone is evaluated with
    --scale 1 --postprocess none. zero-shot scores every benchmark that the folder has (kitti2012, kitti2015,
    middlebury, eth3d), beside published networks that were not trained on them, either.

    Example: aanet evaluate kitti2015 data/kitti2015 --model aanet --model sgbm
    """
    from aanet.data.datasets import open_dataset, parse_options
    from aanet.evaluation.naming import name_folders, name_models
    from aanet.evaluation.protocols import protocol_of
    from aanet.evaluation.report import REPORT_FILES, ErrorMaps, spread, write_report
    from aanet.evaluation.submission import submission_format

    if ray is not None:
        refuse({"--submission": submission})
    reports = [report / name for name in REPORT_FILES] if report else []
    refuse_existing(overwrite, *reports, *([submission] if submission else []))
    models = name_models(model or ([] if predictions else [files.DEFAULT]))
    folders, options = name_folders(predictions or [], models), parse_options(option or [])
    opening = MatcherOptions(engine, precision, max_disparity, device, threads, network_spec)
    matching = match_options(scale, tile, postprocess, inspect=False)
    scoring = Scoring(Models(models, opening, matching), folders, strict, ray, workers)
    if dataset == ZERO_SHOT:
        refuse_options({"--split": split, "--submission": submission})
        evaluate_zero_shot(root, options, scoring, Shown(limit, report, pictures, as_json))
        return
    if submission is not None:
        datasets = [
            open_dataset(dataset, root, part, **options) for part in submission_format(dataset).splits
        ]
        if folders or len(models) != 1:
            names = ", ".join([*models, *folders])
            raise InputError(f"A submission holds the results of one model; got {names}.")
        _submit(datasets, scoring.models, submission, method)
        return
    pairs = open_dataset(dataset, root, split or protocol_of(dataset).split, **options)
    _require_truth(pairs)
    indices = spread(len(pairs), min(limit or len(pairs), len(pairs)))
    shown = [indices[place] for place in spread(len(indices), min(pictures, len(indices)))]
    maps = {name: ErrorMaps(report, name, shown) for name in scoring.names} if report else {}
    evaluations = scoring(pairs, options, indices, maps)
    if report is not None:
        write_report(report, evaluations, list(maps.values()), pairs.split)
    _print(evaluations, pairs.split, as_json, report)


def _require_truth(pairs: StereoDataset) -> None:
    if len(pairs) and pairs.pairs[0].disparity is None:
        raise InputError(
            f"The split {pairs.split!r} of {pairs.name} has no ground truth; evaluate another one, or write "
            "--submission for the benchmark's server."
        )


def _submit(datasets: list[StereoDataset], models: Models, path: Path, method: str) -> None:
    from aanet.evaluation.submission import write_submission

    name, (model,) = datasets[0].name, models.sources
    matcher, origin = models.open(model)
    with progress_bar(f"{name} submission", sum(map(len, datasets))) as advance:
        match = partial(matcher, options=models.matching)
        count = write_submission(match, datasets, path, method, advance)
    print(f"Wrote {count} disparity maps for the {name} server to {path}.")
    for what, words in origin.lines(model, []):
        print(f"{what}: {words}")


def _print(evaluations: list[Evaluation], split: str, as_json: bool, report: Path | None) -> None:
    import json

    from aanet.evaluation.protocols import labels
    from aanet.evaluation.report import PAPER_ROW, as_dict, conditions, region_rows, result_rows

    first = evaluations[0]
    if as_json:
        print(json.dumps(as_dict(evaluations, split), indent=2))
        return
    console = Console()
    title = f"{first.dataset}, split {split}: {first.total} pairs"
    table = new_table(("model",), (*labels(first.protocol), "AUSE", "s / pair"), title)
    for cells in result_rows(evaluations):
        table.add_row(*cells, style="dim" if cells[0].startswith(PAPER_ROW) else None)
    console.print(table)
    regions = new_table(("model", "region"), ("% of pixels", "EPE", "> 1 px", "> 3 px"), "By region")
    for evaluation in evaluations:
        for cells in region_rows(evaluation):
            regions.add_row(evaluation.model, *cells)
    console.print(regions)
    for what, words in conditions(evaluations):
        console.print(f"[bold]{escape(what)}[/bold]: {escape(words)}", highlight=False, soft_wrap=True)
    if report is not None:
        print(f"Wrote {report / 'report.md'} and report.json.")
