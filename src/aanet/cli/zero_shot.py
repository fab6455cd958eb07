"""`aanet evaluate zero-shot`: every benchmark in a folder, beside published zero-shot scores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from aanet.cli.scoring import Scoring
from aanet.cli.tables import new_table
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.data.datasets import StereoDataset
    from aanet.evaluation.report import ErrorMaps
    from aanet.evaluation.zero_shot.benchmarks import Benchmark
    from aanet.evaluation.zero_shot.table import Column, ZeroShot


@dataclass(frozen=True)
class Shown:
    """What is scored of each benchmark, and what is shown of it.

    Attributes:
        limit: Maximum number of pairs of each benchmark; None for all.
        report: The folder of the report; None without one.
        pictures: Number of error maps per model and benchmark in the report.
        as_json: Whether to print JSON.
    """

    limit: int | None
    report: Path | None
    pictures: int
    as_json: bool

    def indices(self, pairs: StereoDataset) -> list[int]:
        """The pairs of a benchmark that are scored."""
        from aanet.evaluation.report import spread

        return spread(len(pairs), min(self.limit or len(pairs), len(pairs)))

    def maps(self, benchmark: Benchmark, indices: list[int], names: list[str]) -> dict[str, ErrorMaps]:
        """What draws the error maps of a benchmark, in a folder of its own."""
        from aanet.evaluation.report import ErrorMaps, spread

        if self.report is None:
            return {}
        shown = [indices[place] for place in spread(len(indices), min(self.pictures, len(indices)))]
        return {name: ErrorMaps(self.report / benchmark.name, name, shown) for name in names}


def refuse_options(options: Mapping[str, object]) -> None:
    """Refuse options that were given although they are for one benchmark."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(
            f"{' and '.join(given)} cannot be combined with zero-shot; name one benchmark instead."
        )


def evaluate_zero_shot(root: Path, options: Mapping[str, object], scoring: Scoring, shown: Shown) -> None:
    """Score every benchmark that is in the folder, and print the table with its protocol."""
    from aanet.evaluation.report import sections
    from aanet.evaluation.zero_shot.benchmarks import chosen, open_present
    from aanet.evaluation.zero_shot.table import Scored, ZeroShot, write_report

    benchmarks = chosen(options)
    present = open_present(root, benchmarks)
    absent = {each: f"no folder {root / each.folder}" for each in benchmarks if each not in present}
    indices = {each: shown.indices(pairs) for each, pairs in present.items()}
    maps = {each: shown.maps(each, indices[each], scoring.names) for each in present}
    without_models = replace(scoring, models=replace(scoring.models, sources={}))
    # Folders of all benchmarks are looked through before anything is matched, which takes longer.
    scored = {
        each: replace(without_models, folders=folders)(pairs, each.options, indices[each], maps[each])
        for (each, pairs), folders in zip(present.items(), _folders_of(scoring, present), strict=True)
    }
    models = replace(scoring, folders={})
    parts: list[str] = []
    for each, pairs in present.items():
        scored[each] = [*models(pairs, each.options, indices[each], maps[each]), *scored[each]]
        if shown.report is not None:
            parts += sections(shown.report, scored[each], list(maps[each].values()), each.title)
    absent |= {each: "no maps" for each, evaluations in scored.items() if not evaluations}
    result = ZeroShot([Scored.of(each, found) for each, found in scored.items() if found], absent)
    if shown.report is not None:
        write_report(shown.report, result, parts)
    _print(result, shown)


def _folders_of(scoring: Scoring, present: Iterable[Benchmark]) -> list[dict[str, Path]]:
    """The folders of predicted maps of each benchmark, which are in the given folders under its name."""
    places = [each.maps_folder for each in present]
    for name, folder in scoring.folders.items():
        missing = [place for place in places if not (folder / place).is_dir()]
        if len(missing) == len(places) or (missing and scoring.strict):
            raise InputError(f"{folder} of {name} has no folder {', '.join(missing)} with maps.")
    return [
        {name: folder / place for name, folder in scoring.folders.items() if (folder / place).is_dir()}
        for place in places
    ]


def _print(result: ZeroShot, shown: Shown) -> None:
    from aanet.evaluation.zero_shot.table import published_rows

    if shown.as_json:
        print(json.dumps(result.as_dict(), indent=2))
        return
    columns, rows = result.table()
    print_zero_shot(columns, [*rows, *published_rows(columns)], result.lines())
    if shown.report is not None:
        print(f"Wrote {shown.report / 'report.md'} and report.json.")


def print_zero_shot(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], lines: Iterable[tuple[str, str]]
) -> None:
    """Print a table of zero-shot scores, and what is needed to read it."""
    from aanet.evaluation.zero_shot.table import is_published

    console = Console()
    title = "Zero-shot generalization, wrong pixels in percent; Q, H and F are Middlebury v3"
    table = new_table(("model",), tuple(column.heading for column in columns), title)
    for cells in rows:
        table.add_row(*map(escape, cells), style="dim" if is_published(cells[0]) else None)
    console.print(table)
    for what, text in lines:
        console.print(f"[bold]{escape(what)}[/bold]: {escape(text)}", highlight=False, soft_wrap=True)
