"""Where the bundled weights stand among published zero-shot scores.

The scores on the pairs of development are in `zero-shot.json` beside the weights, which
`scripts/zero_shot_scores.py` writes by the command `aanet evaluate zero-shot`.  Each row names the digest of
its weights, so that scores of earlier weights are recognized.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aanet.evaluation.origin import digest_of
from aanet.evaluation.zero_shot.benchmarks import BENCHMARKS
from aanet.evaluation.zero_shot.published import PUBLISHED, Scores
from aanet.evaluation.zero_shot.table import (
    COUNTS,
    Column,
    cells_of,
    filled_columns,
    published_lines,
    published_rows,
)
from aanet.models.weights import files

FILE = "zero-shot.json"
ALONE = "network alone"  # without upscaling and post-processing
UNSEEN = f"unseen {COUNTS}"
KNOWN = "of them, development used Motorcycle only, one of Middlebury's 15 scenes"
_COMPLETE = {each.name: each.complete for each in BENCHMARKS}


@dataclass(frozen=True)
class Standing:
    """The zero-shot scores of bundled weights, or of what they are compared with.

    Attributes:
        model: The name of the weights, or another model.
        scores: By benchmark and metric.
        pairs: Number of scored pairs by benchmark.
        weights: The digest of the weights that were scored; None for other models.
        handling: How they were used, if not as they recommend.
    """

    model: str
    scores: Scores
    pairs: dict[str, int]
    weights: str | None = None
    handling: str = ""

    @property
    def row_name(self) -> str:
        """The model, how it was used, and whether the weights have changed since."""
        parts = [self.model, *([self.handling] if self.handling else [])]
        earlier = self.weights is not None and self.weights != digest_of(self.model)
        return ", ".join([*parts, *(["earlier weights"] if earlier else [])])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


_HELD_OUT_PAIRS = {"kitti2015": 11, "middlebury-Q": 15, "eth3d": 2}


def _held_out(
    model: str, d1: float, bad2_noc: float | None, bad2: float, epe: float, weights: str | None = None
) -> Standing:
    middlebury = {"bad2": bad2} if bad2_noc is None else {"bad2_noc": bad2_noc, "bad2": bad2}
    scores = {"kitti2015": {"d1_all": d1}, "middlebury-Q": middlebury, "eth3d": {"epe": epe}}
    return Standing(model, scores, _HELD_OUT_PAIRS, weights)


# Measured independently of the development of the weights.
HELD_OUT: tuple[Standing, ...] = (
    _held_out(
        *("aanet", 4.3, 9.3, 13.8, 0.57),
        "sha256:3a4289f5296337ac7e85ea0fa9a3d477118ba38a4066a86a60e035f43b7d7618",
    ),
    _held_out("sgbm", 6.2, 13.6, 18.6, 0.47),
    _held_out("HITNet", 2.0, None, 8.8, 0.15),
)


def measured() -> list[Standing]:
    """Return the scores on the pairs of development; none if the file is missing."""
    file = files.BUNDLED / FILE
    if not file.is_file():
        return []
    return [Standing(**row) for row in json.loads(file.read_text(encoding="utf-8"))]


@dataclass(frozen=True)
class Standings:
    """What is known about some bundled weights, and about SGBM and HITNet on the same pairs."""

    development: Sequence[Standing]
    held_out: Sequence[Standing]

    @classmethod
    def of(cls, names: Sequence[str]) -> Standings | None:
        """Look up bundled weights by name; None if nothing was measured."""
        groups = [_with_others(names, rows) for rows in (measured(), HELD_OUT)]
        return cls(*groups) if any(groups) else None

    def table(self) -> tuple[list[Column], list[list[str]]]:
        """Return the columns and rows; a row of counts precedes the scores on the same pairs."""
        groups = {COUNTS: self.development, UNSEEN: self.held_out}
        scores = [row.scores for rows in groups.values() for row in rows]
        columns = filled_columns([*scores, *(row.scores for row in PUBLISHED)])
        cells: list[list[str]] = []
        for title, rows in groups.items():
            if rows:
                cells.append([title, *_counts(rows, columns)])
                cells += [[row.row_name, *cells_of(row.scores, columns)] for row in rows]
        return columns, [*cells, *published_rows(columns)]

    def lines(self) -> list[tuple[str, str]]:
        """Return what is needed to read the table."""
        lines = [("bundled weights", "trained on synthetic scenes of this project, on no real pair")]
        if self.development:
            words = "weights and settings were compared on them during development"
            lines.append((COUNTS, f"subsets, scored by `aanet evaluate zero-shot`; {words}"))
        if self.held_out:
            epe = [f"{row.row_name} {row.scores['eth3d']['epe']:.2f}" for row in self.held_out]
            pairs = self.held_out[0].pairs["eth3d"]
            lines += [
                (UNSEEN, f"measured independently, as means over images; {KNOWN}"),
                (f"{UNSEEN}, ETH3D", f"end-point error on {pairs} pairs, in px: {', '.join(epe)}"),
                (
                    f"{UNSEEN}, HITNet",
                    "the publisher's network for ETH3D; what it was trained on is not documented",
                ),
            ]
        return [*lines, *published_lines()]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "development": [row.as_dict() for row in self.development],
            "held_out": [row.as_dict() for row in self.held_out],
        }


def _with_others(names: Sequence[str], rows: Iterable[Standing]) -> list[Standing]:
    """The rows of the named weights, then those of models without weights if there are any of the former."""
    found = list(rows)
    named = [row for name in names for row in found if row.model == name]
    return [*named, *(row for row in found if row.weights is None)] if named else []


def _counts(rows: Sequence[Standing], columns: Sequence[Column]) -> list[str]:
    """How many pairs the scores of these rows are of, where at least one has a score."""
    scored = filled_columns([row.scores for row in rows], columns)
    return [
        f"{rows[0].pairs[column.benchmark]}/{_COMPLETE[column.benchmark]}" if column in scored else "–"
        for column in columns
    ]
