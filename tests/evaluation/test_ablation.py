"""Tables and pictures of the ablation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aanet.data.sample import StereoSample
from aanet.evaluation.ablation import COMPLETE, PLAIN, picture, report, score_set
from aanet.evaluation.evaluate import Matcher, Prediction
from aanet.typing import Image

SIZE = (40, 60)


class Steps:
    """Pairs with a disparity of 10 px on the left half and of 20 px on the right; textured on the right."""

    name = "folder"

    def __init__(self, density: float = 1.0) -> None:
        self.density = density

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> StereoSample:
        rng = np.random.default_rng(index)
        left = np.full((*SIZE, 3), 90, np.uint8)
        left[:, 30:] = rng.integers(0, 256, (SIZE[0], 30, 3))
        left[0, 0] = index  # by which the matcher below knows the pair
        disparity = np.where(np.arange(SIZE[1]) < 30, 10, 20) + np.zeros(SIZE)
        valid = rng.random(SIZE) < self.density
        return StereoSample(f"pair {index}", left, left, disparity.astype(np.float32), valid)


def matcher(error: float, by_index: float = 0.0, at_edges: float = 0.0) -> Matcher:
    """Predict too large a disparity: everywhere, more in later pairs, and more near the edge."""

    def match(left: Image, right: Image) -> Prediction:  # noqa: ARG001 - the signature of a matcher
        column = np.arange(SIZE[1])
        wrong = error + by_index * left[0, 0, 0] + np.where(np.abs(column - 29.5) < 5, at_edges, 0)
        exact = np.where(column < 30, 10, 20)
        return Prediction((exact + wrong + np.zeros(SIZE)).astype(np.float32))

    return match


def test_scores_are_those_of_each_region() -> None:
    scored = score_set("steps", Steps(), {PLAIN: matcher(2.0, at_edges=2.5), COMPLETE: matcher(0.5)}, [0, 2])
    plain, complete = scored.scores(PLAIN), scored.scores(COMPLETE)
    assert plain["epe"] == pytest.approx(2.0 + 2.5 * 10 / 60)  # the edge is 10 of 60 columns wide
    assert plain["edges"] == pytest.approx(4.5)
    assert plain["bad1"] == pytest.approx(100.0)
    assert plain["d1"] == pytest.approx(100 * 10 / 60)  # only 4.5 px are above 3 px
    assert complete == pytest.approx({"epe": 0.5, "bad1": 0, "d1": 0, "edges": 0.5, "textureless": 0.5})
    assert scored.as_dict()["pairs"] == 2


def test_edges_of_sparse_ground_truth_are_not_scored() -> None:
    scored = score_set("sparse", Steps(density=0.2), {PLAIN: matcher(1.0), COMPLETE: matcher(1.0)}, [0, 1])
    assert math.isnan(scored.scores(PLAIN)["edges"])
    assert scored.as_dict()["networks"][PLAIN]["edges"] is None
    assert scored.scores(PLAIN)["textureless"] == pytest.approx(1.0)


def test_the_typical_pair_has_the_median_difference() -> None:
    networks = {PLAIN: matcher(1.0, by_index=1.0), COMPLETE: matcher(1.0)}
    assert score_set("steps", Steps(), networks, [0, 1, 4]).typical_pair() == 1
    assert score_set("steps", Steps(), networks, [4, 0, 3]).typical_pair() == 3


def test_the_report_has_our_tables_and_the_papers() -> None:
    networks = {PLAIN: matcher(1.25), "aanet_no_isa": matcher(0.75), COMPLETE: matcher(0.5)}
    text = report([score_set("steps", Steps(), networks, [0])])
    assert "## steps, 1 pairs" in text
    assert "| w/o ISA & CSA | 1.25 | 100.00 | 0.00 | 1.25 | 1.25 |" in text
    assert "| w/o ISA | 0.97 | 10.1 | 0.7 | 2.22 |" in text


def test_the_picture_names_both_errors_and_shows_what_was_predicted() -> None:
    sample = Steps()[0]
    same = np.where(np.arange(SIZE[1]) < 30, 10, 20) + np.zeros(SIZE, np.float32)
    a = picture(sample, same.astype(np.float32), same.astype(np.float32))
    b = picture(sample, (same + 5).astype(np.float32), same.astype(np.float32))
    assert a.shape == b.shape
    changed = np.abs(a.astype(int) - b).sum(axis=2) > 0
    columns = np.flatnonzero(changed.any(axis=0))
    assert columns.min() > a.shape[1] // 2  # only the second picture of the first row differs
