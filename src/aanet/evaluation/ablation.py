"""Scores and pictures of the paper's ablation (table 1, figure 3): four networks on several sets of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

import numpy as np

from aanet import viz
from aanet.data.datasets import PairSource
from aanet.data.sample import StereoSample
from aanet.evaluation import markdown, paper
from aanet.evaluation.evaluate import Evaluation, Matcher, evaluate
from aanet.evaluation.metrics import average
from aanet.evaluation.report import SPARSE, format_number
from aanet.typing import FloatMap, Image

PLAIN, COMPLETE = "aanet_no_isa_csa", "aanet"  # the two networks that the paper's figure compares
COLUMNS = {
    "epe": "EPE",
    "bad1": "> 1 px",
    "d1": "D1",
    "edges": "EPE at edges",
    "textureless": "EPE no texture",
}


@dataclass(frozen=True)
class AblationSet:
    """The scores of every network on one set of pairs.

    Attributes:
        name: Of the set.
        evaluations: By network, in the order of the paper's table.
        indices: Of the pairs that were scored.
        dense: Whether the ground truth is dense, without which regions at edges are not defined.
    """

    name: str
    evaluations: dict[str, Evaluation]
    indices: list[int]
    dense: bool

    def scores(self, network: str) -> dict[str, float]:
        """Return the columns of the table, averaged over images; NaN where a region is not defined."""
        evaluation = self.evaluations[network]
        values = {
            "epe": average(evaluation.in_region("all"), lambda sums: sums.epe, "images"),
            "bad1": average(evaluation.in_region("all"), lambda sums: sums.bad(1.0), "images"),
            "d1": average(evaluation.in_region("all"), lambda sums: sums.d1, "images"),
        }
        for region in ("edges", "textureless"):
            sums = evaluation.in_region(region) if self.dense or region != "edges" else []
            values[region] = average(sums, lambda sums: sums.epe, "images")
        return values

    def typical_pair(self) -> int:
        """Return the index of the pair on which the two networks differ by the median of their difference."""
        errors = [
            [pair.regions["all"].epe for pair in self.evaluations[name].pairs] for name in (PLAIN, COMPLETE)
        ]
        differences = [plain - complete for plain, complete in zip(*errors, strict=True)]
        return self.indices[differences.index(median_low(differences))]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        return {
            "pairs": len(self.indices),
            "networks": {
                name: {key: None if math.isnan(value) else value for key, value in self.scores(name).items()}
                for name in self.evaluations
            },
        }


def score_set(
    name: str, source: PairSource, matchers: Mapping[str, Matcher], indices: Iterable[int]
) -> AblationSet:
    """Score every network on the given pairs of a set, which are read once."""
    chosen = list(indices)
    samples = [source[index] for index in chosen]
    kept = Samples(source.name, samples)
    evaluations = {network: evaluate(matcher, kept, model=network) for network, matcher in matchers.items()}
    densities = [sample.valid.mean() for sample in samples if sample.valid is not None]
    return AblationSet(name, evaluations, chosen, bool(densities) and min(densities) > SPARSE)


@dataclass
class Samples:
    """Samples in memory, as a source of pairs."""

    name: str
    samples: Sequence[StereoSample]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> StereoSample:
        return self.samples[index]


def report(sets: Sequence[AblationSet]) -> str:
    """Return the tables in Markdown: every set with the four networks, then the paper's table 1."""
    lines: list[str] = []
    for each in sets:
        lines += [f"## {each.name}, {len(each.indices)} pairs", ""]
        rows = [
            [paper.ABLATION[name].method, *(format_number(value) for value in each.scores(name).values())]
            for name in each.evaluations
        ]
        lines += [*markdown.table(["", *COLUMNS.values()], rows), ""]
    lines += ["## The paper's table 1", ""]
    published = [
        [
            row.method,
            *map(str, (row.sceneflow_epe, row.sceneflow_bad1, row.kitti2015_epe, row.kitti2015_d1_all)),
        ]
        for row in paper.ABLATION.values()
    ]
    headings = ["", "Scene Flow: EPE", "> 1 px", "KITTI 2015: EPE", "D1"]
    return "\n".join([*lines, *markdown.table(headings, published), ""])


def picture(sample: StereoSample, plain: FloatMap, complete: FloatMap) -> Image:
    """Draw a pair as the paper's figure does: image, without both modules, AANet, and ground truth."""
    assert sample.disparity is not None
    assert sample.valid is not None
    truth = np.where(sample.valid, sample.disparity, np.float32(np.nan))
    low, high = viz.value_range(truth)
    maps = {PLAIN: plain, COMPLETE: complete}
    titles = []
    for name, predicted in maps.items():
        error = float(np.abs(predicted - sample.disparity)[sample.valid].mean())
        titles.append(f"{paper.ABLATION[name].method}: EPE {error:.2f} px")
    colored = [viz.colorize_disparity(each, low, high) for each in (*maps.values(), truth)]
    return viz.panel([sample.left, *colored], ["left image", *titles, "ground truth"], columns=2)
