"""Markdown reports with results, protocol, errors by region, and error maps of some pairs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aanet.data.sample import StereoSample
from aanet.evaluation.evaluate import REGIONS, Evaluation
from aanet.evaluation.markdown import table
from aanet.evaluation.paper import Published
from aanet.evaluation.protocols import describe, labels
from aanet.io.atomic import atomic_path
from aanet.io.images import write_image
from aanet.typing import FloatMap

REPORT_FILES = ("report.md", "report.json")
PAPER_ROW = "paper, table"
SPARSE = 0.5  # ground truth with a lower density is drawn with larger dots


class ErrorMaps:
    """An observer for `evaluate` that draws the error maps of some pairs."""

    def __init__(self, folder: Path, model: str, indices: Sequence[int]) -> None:
        self.folder = folder
        self.model = model
        self.indices = frozenset(indices)
        self.drawn: list[tuple[str, Path]] = []

    def __call__(self, index: int, sample: StereoSample, predicted: FloatMap) -> None:
        """Draw the pair if it was selected."""
        if index not in self.indices or sample.disparity is None or sample.valid is None:
            return
        from aanet import viz

        truth = np.where(sample.valid, sample.disparity, np.float32(np.nan))
        low, high = viz.value_range(truth)
        dot = 1 if sample.valid.mean() > SPARSE else 3
        picture = viz.panel(
            [
                sample.left,
                viz.colorize_disparity(truth, low, high),
                viz.colorize_disparity(predicted, low, high),
                viz.colorize_error(predicted, sample.disparity, sample.valid, dot=dot),
            ],
            ["left image", "ground truth", self.model, "error (yellow to red: > 3 px and > 5 %)"],
        )
        path = self.folder / "pictures" / f"{_file_name(self.model)}-{index:05d}.png"
        write_image(path, picture)
        self.drawn.append((sample.name, path))


def spread(total: int, count: int) -> list[int]:
    """Return at most `count` indices, evenly spaced over `total`."""
    return sorted({index * total // count for index in range(count)}) if count else []


def as_dict(evaluations: Sequence[Evaluation], split: str) -> dict[str, Any]:
    """Return all results as plain values for JSON, with the paper's."""
    rows = {each.model: each.published for each in evaluations}
    return {
        "split": split,
        "results": [each.as_dict() for each in evaluations],
        "paper": {name: row and {"table": row.table, "metrics": row.metrics} for name, row in rows.items()},
    }


def write_report(
    folder: Path, evaluations: Sequence[Evaluation], maps: Sequence[ErrorMaps], split: str
) -> Path:
    """Write `report.md` and `report.json` into the folder of the error maps."""
    first = evaluations[0]
    lines = [f"# {first.dataset}, split {split}: {first.total} pairs", ""]
    lines += table(["model", *labels(first.protocol), "AUSE", "s / pair"], result_rows(evaluations))
    lines += ["", "## Protocol", ""]
    lines += [f"- {what}: {words}" for what, words in conditions(evaluations)]
    lines += sections(folder, evaluations, maps)
    write_files(folder, lines, as_dict(evaluations, split))
    return folder / REPORT_FILES[0]


def sections(
    folder: Path, evaluations: Sequence[Evaluation], maps: Sequence[ErrorMaps], dataset: str = ""
) -> list[str]:
    """Return the parts of a report in this folder on each model: errors by region, and error maps.

    A report on several datasets names that of these evaluations.
    """
    on = f" on {dataset}" if dataset else ""
    lines: list[str] = []
    for evaluation in evaluations:
        lines += ["", f"## {evaluation.model}{on} by region", ""]
        lines += table(["region", "% of pixels", "EPE", "> 1 px", "> 3 px"], region_rows(evaluation))
        scored = [
            (pair.regions["all"].epe, pair.name) for pair in evaluation.pairs if pair.regions["all"].pixels
        ]
        worst = [f"{name} ({format_number(epe)} px)" for epe, name in sorted(scored, reverse=True)[:5]]
        lines += ["", f"Largest errors: {', '.join(worst)}."]
    for drawing in maps:
        for name, path in drawing.drawn:
            lines += [
                "",
                f"## {drawing.model}{on}: {name}",
                "",
                f"![{name}]({path.relative_to(folder).as_posix()})",
            ]
    return lines


def write_files(folder: Path, lines: Sequence[str], facts: dict[str, Any]) -> None:
    """Write the lines of `report.md`, and the facts as `report.json`."""
    for name, text in zip(REPORT_FILES, ("\n".join(lines), json.dumps(facts, indent=2)), strict=True):
        with atomic_path(folder / name) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


def result_rows(evaluations: Sequence[Evaluation]) -> list[list[str]]:
    """Return the rows of the table: each model, then the paper's row of its network if there is one."""
    rows = []
    for index, evaluation in enumerate(evaluations):
        values = [format_number(evaluation.value(metric)) for metric in evaluation.protocol.metrics]
        ause = "–" if evaluation.ause is None else format_number(evaluation.ause)
        seconds = "–" if evaluation.seconds is None else f"{evaluation.seconds:.3f}"
        rows.append([evaluation.row_name, *values, ause, seconds])
        row = evaluation.published
        if row is not None and row not in [later.published for later in evaluations[index + 1 :]]:
            rows.append(_paper_row(row, evaluation))
    return rows


def conditions(evaluations: Sequence[Evaluation]) -> list[tuple[str, str]]:
    """Return what is needed to compare the rows, and to compute them again.

    That is the origin of each model's disparities, the protocol, the paper's data, and missing ground truth.
    """
    first = evaluations[0]
    rows = [evaluation.published for evaluation in evaluations]
    sources = dict.fromkeys(f"table {row.table}: {row.measured_on}" for row in rows if row is not None)
    return [
        *(line for each in evaluations for line in each.origin_lines()),
        *describe(first.protocol),
        *(("paper", source) for source in sources),
        *(("note", note) for note in first.notes()),
    ]


def region_rows(evaluation: Evaluation) -> list[list[str]]:
    """Return the rows of the table of regions, without undefined regions."""
    rows = []
    for region in REGIONS:
        values = evaluation.region(region)
        if not math.isnan(values["epe"]):
            rows.append([region, *(format_number(value) for value in values.values())])
    return rows


def format_number(value: float) -> str:
    """Format with two decimals; NaN is a dash."""
    return "–" if math.isnan(value) else f"{value:.2f}"


def _paper_row(row: Published, evaluation: Evaluation) -> list[str]:
    values = [format_number(row.metrics.get(metric, math.nan)) for metric in evaluation.protocol.metrics]
    return [f"{PAPER_ROW} {row.table}", *values, "–", "–"]


def _file_name(model: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in model)
