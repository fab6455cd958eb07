"""`aanet evaluate`: score models on a dataset, side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from aanet.cli.console import progress_bar, track
from aanet.cli.options import (
    ANY_MODEL,
    MATCHING,
    Dataset,
    DatasetOptions,
    Engine,
    JsonOutput,
    MaxDisparity,
    Overwrite,
    Root,
    refuse_existing,
)
from aanet.cli.tables import new_table
from aanet.errors import InputError
from aanet.models.weights import files

if TYPE_CHECKING:
    from aanet.data.datasets import StereoDataset
    from aanet.evaluation import Evaluation
    from aanet.evaluation.report import ErrorMaps
    from aanet.matcher import StereoMatcher


def evaluate(
    dataset: Dataset,
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
    max_disparity: MaxDisparity = None,
    engine: Engine = None,
    option: DatasetOptions = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Also write a Markdown report with error maps here."
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
) -> None:
    """Evaluate one or several models on a dataset.

    The metrics are those of the dataset's benchmark and are shown beside the numbers of the paper.

    Example: aanet evaluate kitti2015 data/kitti2015 --model aanet --model sgbm
    """
    written = ([report / "report.md"] if report else []) + ([submission] if submission else [])
    refuse_existing(overwrite, *written)
    from aanet.data.datasets import open_dataset, parse_options
    from aanet.evaluation.naming import name_models
    from aanet.evaluation.protocols import protocol_of
    from aanet.evaluation.report import ErrorMaps, spread, write_report
    from aanet.evaluation.submission import submission_format

    models, options = name_models(model or [files.DEFAULT]), parse_options(option or [])
    if submission is not None:
        datasets = [
            open_dataset(dataset, root, part, **options) for part in submission_format(dataset).splits
        ]
        _submit(datasets, _matcher(_only(models), max_disparity, engine), submission, method)
        return
    pairs = open_dataset(dataset, root, split or protocol_of(dataset).split, **options)
    _require_truth(pairs)
    indices = spread(len(pairs), min(limit or len(pairs), len(pairs)))
    shown = [indices[place] for place in spread(len(indices), min(pictures, len(indices)))]
    evaluations, maps = [], []
    for name, source in models.items():
        drawing = ErrorMaps(report, name, shown) if report is not None else None
        # Among several models, sgbm has no engine to choose; alone, the matcher refuses the option.
        chosen = None if source == "sgbm" and len(models) > 1 else engine
        matcher = _matcher(source, max_disparity, chosen)
        evaluations.append(_score(name, source, matcher, pairs, indices, drawing))
        maps += [drawing] if drawing is not None else []
    if report is not None:
        write_report(report, evaluations, maps)
    _print(evaluations, pairs.split, as_json, report)


def _matcher(source: str, max_disparity: int | None, engine: str | None) -> StereoMatcher:
    from aanet.matcher import StereoMatcher

    return StereoMatcher(source, engine=engine, max_disparity=max_disparity)


def _only(models: dict[str, str]) -> str:
    if len(models) != 1:
        raise InputError(f"A submission holds the results of one model; got {', '.join(models)}.")
    return next(iter(models.values()))


def _require_truth(pairs: StereoDataset) -> None:
    if len(pairs) and pairs.pairs[0].disparity is None:
        raise InputError(
            f"The split {pairs.split!r} of {pairs.name} has no ground truth; evaluate another one, or write "
            "--submission for the benchmark's server."
        )


def _score(
    name: str,
    source: str,
    matcher: StereoMatcher,
    pairs: StereoDataset,
    indices: list[int],
    drawing: ErrorMaps | None,
) -> Evaluation:
    from aanet.evaluation import evaluate as score

    return score(
        partial(matcher, inspect=False),
        pairs,
        model=name,
        network=matcher.spec.name,
        source=source,
        indices=track(indices, name, len(indices)),
        observe=drawing,
    )


def _submit(datasets: list[StereoDataset], matcher: StereoMatcher, path: Path, method: str) -> None:
    from aanet.evaluation.submission import write_submission

    name = datasets[0].name
    with progress_bar(f"{name} submission", sum(map(len, datasets))) as advance:
        count = write_submission(partial(matcher, inspect=False), datasets, path, method, advance)
    print(f"Wrote {count} disparity maps for the {name} server to {path}.")


def _print(evaluations: list[Evaluation], split: str, as_json: bool, report: Path | None) -> None:
    import json

    from aanet.evaluation.protocols import labels
    from aanet.evaluation.report import PAPER_ROW, conditions, region_rows, result_rows

    first = evaluations[0]
    if as_json:
        rows = {e.model: e.published for e in evaluations}
        published = {name: row and {"table": row.table, "metrics": row.metrics} for name, row in rows.items()}
        results = [e.as_dict() for e in evaluations]
        print(json.dumps({"split": split, "results": results, "paper": published}, indent=2))
        return
    console = Console()
    title = f"{first.dataset}, split {split}: {len(first.pairs)} pairs"
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
        print(f"Wrote {report / 'report.md'}.")
