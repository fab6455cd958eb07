"""Scores during training are those of the network as a user runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from aanet.data.datasets import open_dataset
from aanet.errors import AanetError
from aanet.io.images import write_image
from aanet.matcher import StereoMatcher
from aanet.models import zoo
from aanet.result import StereoResult
from aanet.training.batches import open_stages
from aanet.training.environment import open_validation
from aanet.training.recipe import Recipe
from aanet.training.validation import ValidationSet, score, validate


class Plane:
    """A stand-in matcher: the disparity is the same everywhere."""

    def __init__(self, disparity: float) -> None:
        self.disparity = disparity

    def __call__(self, left: np.ndarray, _right: np.ndarray, *, inspect: bool) -> StereoResult:
        assert not inspect
        size = left.shape[:2]
        disparity = np.full(size, self.disparity, np.float32)
        return StereoResult(disparity=disparity, confidence=np.ones(size, np.float32), left=left)


def test_all_pixels_with_truth_are_scored(pairs_folder: Path) -> None:
    sample = open_dataset("folder", pairs_folder)[0]  # true disparity 2
    sums = score(Plane(4.5), sample)  # type: ignore[arg-type]
    assert sums.epe == pytest.approx(2.5)
    assert (sums.bad(2.0), sums.bad(3.0)) == (100, 0)
    assert sums.pixels == sample.left.shape[0] * sample.left.shape[1]


def test_a_pair_without_truth_is_named(pairs_folder: Path) -> None:
    sample = open_dataset("folder", pairs_folder)[0]
    sample.disparity = None
    with pytest.raises(AanetError, match=f"{sample.name} has no ground truth"):
        score(Plane(1.0), sample)  # type: ignore[arg-type]


def test_a_network_is_scored_on_sizes_it_does_not_take_and_up_to_the_limit(pairs_folder: Path) -> None:
    torch.manual_seed(0)
    network = zoo.build("stereonet_aa", max_disparity=24)
    source = open_dataset("folder", pairs_folder)  # 56×112: no multiple of the network's
    scores = validate(network, [ValidationSet("two", source, 2), ValidationSet("all", source, 0)])
    matcher = StereoMatcher(network, engine="torch")
    errors = [np.abs(matcher(p.left, p.right).disparity - p.disparity).mean() for p in source]  # type: ignore[arg-type]
    assert scores["two"]["EPE"] == pytest.approx(np.mean(errors[:2]), rel=1e-4)
    assert scores["all"]["EPE"] == pytest.approx(np.mean(errors), rel=1e-4)


STAGE = "[[stage]]\ncrop = [48, 96]\nbatch = 1\nsteps = 1\nlearning_rate = 1e-3\n"


def test_pairs_are_held_out_of_the_folder_that_is_trained_on(make_recipe: Callable[..., Recipe]) -> None:
    held_out = "[[validation.data]]\nname = 'folder'\nsplit = 'val'\n"  # without a root of its own
    recipe = make_recipe(STAGE + held_out, "data.0.split=train")
    (validation,), (trained,) = open_validation(recipe), open_stages(recipe)
    names = [source[i].name for source in (validation.source, trained) for i in range(len(source))]
    assert sorted(names) == [f"folder {number}" for number in range(5)]


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ("name = 'kitti2015'", "does not say where kitti2015 is; give its folder as 'root'"),
        ("name = 'kitti2015'\nroot = 'nowhere'", r"nowhere does not exist; kitti2015 \(https://"),
        ("name = 'folder'\nroot = '{empty}'", "'all' of folder is empty"),
        ("name = 'folder'\nroot = '{without_truth}'", "folder a has no ground truth to validate on"),
    ],
)
def test_validation_sets_that_cannot_be_scored_are_refused_before_training(
    make_recipe: Callable[..., Recipe], tmp_path: Path, validation: str, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    for side in ("left", "right"):
        write_image(tmp_path / "without_truth" / side / "a.png", np.zeros((48, 96, 3), np.uint8))
    places = {name: tmp_path / name for name in ("empty", "without_truth")}
    recipe = make_recipe(f"{STAGE}[[validation.data]]\n{validation.format(**places)}\n")
    with pytest.raises(AanetError, match=message):
        open_validation(recipe)
