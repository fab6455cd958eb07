"""The scores of models by the zero-shot protocol, beside published ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aanet.evaluation.evaluate import Evaluation
from aanet.evaluation.markdown import table
from aanet.evaluation.metrics import METRICS
from aanet.evaluation.origin import MatcherOrigin, Origin
from aanet.evaluation.protocols import describe
from aanet.evaluation.report import write_files
from aanet.evaluation.zero_shot.benchmarks import BENCHMARKS, Benchmark
from aanet.evaluation.zero_shot.published import PUBLISHED, SOURCES, TRAINED_ON, Scores

COUNTS = "pairs"  # name of the row that says how many of the pairs were scored
SHARED = ("mask", "range", "crop", "holes")  # aspects that all benchmarks have in common


@dataclass(frozen=True)
class Column:
    """A metric of a benchmark."""

    benchmark: str
    metric: str
    heading: str  # in terminals
    title: str  # in reports

    def of(self, scores: Scores) -> float:
        """Return the score; NaN without one."""
        return scores.get(self.benchmark, {}).get(self.metric, math.nan)


COLUMNS: tuple[Column, ...] = tuple(
    Column(each.name, metric, heading, f"{each.title}, {METRICS[metric].label}")
    for each in BENCHMARKS
    for metric, heading in zip(each.protocol.metrics, each.headings, strict=True)
)


@dataclass(frozen=True)
class Scored:
    """The scores of all models on one benchmark, as its zero-shot protocol has them."""

    benchmark: Benchmark
    evaluations: tuple[Evaluation, ...]

    @classmethod
    def of(cls, benchmark: Benchmark, evaluations: Iterable[Evaluation]) -> Scored:
        """Take evaluations by the benchmark's own protocol."""
        return cls(benchmark, tuple(replace(each, protocol=benchmark.protocol) for each in evaluations))

    @property
    def pairs(self) -> int:
        """The number of pairs that were to be scored."""
        return self.evaluations[0].total

    def count(self, metric: str) -> str:
        """Say how many of the benchmark's pairs a metric is of, as in 13/200; a dash for none."""
        region = METRICS[metric].region
        defined = [sum(sums.pixels > 0 for sums in each.in_region(region)) for each in self.evaluations]
        return f"{max(defined)}/{self.benchmark.complete}" if any(defined) else "–"

    def describe(self) -> str:
        """Say which pairs and which pixels count, and how."""
        total, one = self.benchmark.complete, self.evaluations[0]
        subset = "all" if self.pairs == total else f"a subset, {self.pairs} of"
        largest = max((each.largest for each in one.pairs if each.largest is not None), default=0.0)
        words = [f"{subset} {total} training pairs", self.benchmark.protocol.description]
        return "; ".join([*words, f"true disparities up to {largest:.0f} px", *one.notes()])

    def out_of_range(self) -> list[str]:
        """Name the models whose range is too small for some pairs."""
        lines = []
        for each in self.evaluations:
            if not isinstance(each.origin, MatcherOrigin):
                continue
            reach = each.origin.spec.max_disparity
            resized = [pair.processing.scale * (pair.largest or 0) for pair in each.pairs if pair.processing]
            count = sum(largest >= reach for largest in resized)
            if count:
                lines.append(
                    f"{count} of {len(each.pairs)} pairs of {self.benchmark.title} have disparities beyond "
                    f"the range of {each.model} (below {reach} px in the resized images), which are errors"
                )
        return lines


@dataclass(frozen=True)
class ZeroShot:
    """The results of the protocol.

    Attributes:
        scored: Every benchmark that was scored.
        absent: The others, and why.
    """

    scored: Sequence[Scored]
    absent: Mapping[Benchmark, str]

    @property
    def benchmarks(self) -> list[Benchmark]:
        """The benchmarks that were asked for."""
        asked = {*self.absent, *(part.benchmark for part in self.scored)}
        return [each for each in BENCHMARKS if each in asked]

    def scores(self) -> dict[str, Scores]:
        """Return the scores of each model."""
        models = dict.fromkeys(each.model for part in self.scored for each in part.evaluations)
        found: dict[str, Scores] = {model: {} for model in models}
        for part in self.scored:
            for each in part.evaluations:
                values = {metric: each.value(metric) for metric in each.protocol.metrics}
                found[each.model][part.benchmark.name] = values
        return found

    def table(self) -> tuple[list[Column], list[list[str]]]:
        """Return the columns and the rows of our scores: how many pairs, then each model."""
        scores = self.scores()
        asked = {each.name for each in self.benchmarks}
        filled = filled_columns([*scores.values(), *(row.scores for row in PUBLISHED)])
        columns = [column for column in filled if column.benchmark in asked]
        parts = {part.benchmark.name: part for part in self.scored}
        known = [parts.get(column.benchmark) for column in columns]
        counts = [
            part.count(column.metric) if part else "–" for part, column in zip(known, columns, strict=True)
        ]
        rows = [[COUNTS, *counts]]
        partial = {
            (each.model, part.benchmark.name)
            for part in self.scored
            for each in part.evaluations
            if len(each.pairs) < each.total
        }
        for model, values in scores.items():
            marks = ["*" if (model, column.benchmark) in partial else "" for column in columns]
            cells = [cell + mark for cell, mark in zip(cells_of(values, columns), marks, strict=True)]
            rows.append([model, *cells])
        return columns, rows

    def lines(self) -> list[tuple[str, str]]:
        """Return the protocol: what is needed to compare the rows, and to compute them again."""
        lines = [(part.benchmark.title, part.describe()) for part in self.scored]
        lines += [(each.title, f"absent, {why}") for each, why in self.absent.items()]
        evaluations = [each for part in self.scored for each in part.evaluations]
        lines += _origins(evaluations)
        lines += [line for line in describe(evaluations[0].protocol) if line[0] in SHARED]
        lines += [("note", note) for part in self.scored for note in part.out_of_range()]
        if any(len(each.pairs) < each.total for each in evaluations):
            lines.append(("note", "*: without the pairs whose maps are missing"))
        return [*lines, *published_lines()]

    def as_dict(self) -> dict[str, Any]:
        """Return all results as plain values for JSON."""
        parts = {part.benchmark.name: part for part in self.scored}
        return {
            "protocol": "zero-shot",
            "benchmarks": [_describe(each, parts.get(each.name)) for each in self.benchmarks],
            "scores": {
                model: {name: {k: _number(v) for k, v in values.items()} for name, values in found.items()}
                for model, found in self.scores().items()
            },
            "published": published_as_dict(),
            "results": {name: [each.as_dict() for each in part.evaluations] for name, part in parts.items()},
        }


def filled_columns(scores: Iterable[Scores], columns: Sequence[Column] = COLUMNS) -> list[Column]:
    """Return the columns in which at least one row has a score."""
    rows = list(scores)
    return [column for column in columns if any(not math.isnan(column.of(row)) for row in rows)]


def cells_of(scores: Scores, columns: Sequence[Column]) -> list[str]:
    """Format the scores of a row as publications do, with one decimal; a dash without a score."""
    values = [column.of(scores) for column in columns]
    return ["–" if math.isnan(value) else f"{value:.1f}" for value in values]


def published_rows(columns: Sequence[Column]) -> list[list[str]]:
    """Return the published rows of the table."""
    return [[row.row_name, *cells_of(row.scores, columns)] for row in PUBLISHED]


def is_published(row_name: str) -> bool:
    """Whether this is the name of a published row."""
    return row_name in {row.row_name for row in PUBLISHED}


def published_lines() -> list[tuple[str, str]]:
    """Return the sources of the published rows, and what the networks were trained on."""
    trained = f"networks trained on {TRAINED_ON} alone, scored on all training pairs of each benchmark"
    return [("published", trained), *((f"[{number}]", source) for number, source in SOURCES.items())]


def published_as_dict() -> list[dict[str, Any]]:
    """Return the published rows as plain values for JSON."""
    return [
        {
            "method": row.method,
            "trained_on": TRAINED_ON,
            "scores": row.scores,
            "sources": [SOURCES[number] for number in row.sources],
        }
        for row in PUBLISHED
    ]


def write_report(folder: Path, result: ZeroShot, sections: Sequence[str]) -> None:
    """Write `report.md` and `report.json`; the sections follow the table and the protocol."""
    columns, rows = result.table()
    lines = ["# Zero-shot generalization", ""]
    lines += table(["model", *(column.title for column in columns)], [*rows, *published_rows(columns)])
    lines += ["", "## Protocol", "", *(f"- {what}: {words}" for what, words in result.lines()), *sections]
    write_files(folder, lines, result.as_dict())


def _origins(evaluations: Sequence[Evaluation]) -> list[tuple[str, str]]:
    """How the disparities of each model were obtained; what is the same on several benchmarks, once."""
    lines: list[tuple[str, str]] = []
    seen: list[tuple[str, Origin]] = []
    for each in evaluations:
        key = (each.model, each.origin)
        if each.origin is None or key in seen:
            continue
        seen.append((each.model, each.origin))
        same = [other for other in evaluations if (other.model, other.origin) == key]
        done = [pair.processing for other in same for pair in other.pairs if pair.processing]
        lines += each.origin.lines(each.model, done)
    return lines


def _describe(benchmark: Benchmark, part: Scored | None) -> dict[str, Any]:
    pairs = 0 if part is None else part.pairs
    status = "absent" if part is None else "complete" if pairs == benchmark.complete else "subset"
    protocol = benchmark.protocol
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "folder": benchmark.folder,
        "status": status,
        "pairs": pairs,
        "complete": benchmark.complete,
        "metrics": list(protocol.metrics),
        "average": protocol.average,
        "definition": protocol.description,
        "notes": [] if part is None else part.evaluations[0].notes(),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
