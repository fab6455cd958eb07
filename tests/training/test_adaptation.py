"""Adaptation to pairs without truth: the pairs and pixels that are used, the recipe, and the verdict."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from aanet.data.datasets import Folder
from aanet.errors import InputError
from aanet.io.images import AnyImage
from aanet.models.weights import checkpoint, files
from aanet.training.adaptation import (
    Change,
    FineTuning,
    LabelRule,
    PreparedPairs,
    Scores,
    adaptation_recipe,
    choose_held_out,
    prepare_pairs,
)
from aanet.training.batches import open_mixture
from helpers.fake_engine import FakeEngine
from helpers.small_networks import build_small

HEIGHT, WIDTH, DISPARITY = 32, 64, 5


def some_pairs(count: int, width: int = WIDTH) -> list[tuple[str, AnyImage, AnyImage]]:
    """Pairs whose left half is dark in red, which `FakeEngine` takes for its confidence."""
    image = np.full((HEIGHT, width, 3), 255, np.uint8)
    image[:, : width // 2, 0] = 100
    return [(f"pair {number}", image, image) for number in range(count)]


def prepare(folder: Path, on_right: float = DISPARITY, scale: float = 1.0, **rule: float) -> PreparedPairs:
    views = itertools.cycle([DISPARITY, on_right])
    matcher = FakeEngine(lambda _: np.float32(next(views))).matcher
    pairs = some_pairs(4)
    return prepare_pairs(pairs, {1}, matcher, lambda _width: scale, LabelRule(**rule), folder)


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(10, 0.2, 2), (2, 0.01, 1), (2, 0.99, 1), (5, 0.5, 2)]
)
def test_some_pairs_are_left_out_but_never_all(count: int, share: float, expected: int) -> None:
    chosen = choose_held_out(count, share, seed=3)
    assert len(chosen) == expected
    assert chosen <= set(range(count))
    assert chosen == choose_held_out(count, share, seed=3)


def test_of_a_video_the_last_pairs_are_left_out() -> None:
    assert choose_held_out(10, 0.3, seed=0, in_order=True) == {7, 8, 9}
    assert len({frozenset(choose_held_out(10, 0.3, seed)) for seed in range(5)}) > 1


def test_labels_are_where_the_views_agree_with_confidence(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    assert (prepared.training_pairs, prepared.held_out_pairs, prepared.smallest) == (3, 1, (HEIGHT, WIDTH))
    assert prepared.labeled == pytest.approx(0.5)
    dataset = Folder(prepared.training)
    assert [pair.key for pair in dataset.pairs] == ["000000", "000002", "000003"]
    for index in range(len(dataset)):
        sample = dataset[index]
        assert sample.disparity is not None
        assert (sample.disparity[:, : WIDTH // 2] == 0).all()
        assert (sample.disparity[:, WIDTH // 2 :] == DISPARITY).all()
    left_out = Folder(prepared.held_out)
    assert [pair.key for pair in left_out.pairs] == ["000001"]
    assert left_out[0].disparity is None


def test_without_a_threshold_the_confidence_does_not_matter(tmp_path: Path) -> None:
    assert prepare(tmp_path, min_confidence=0.0).labeled == pytest.approx((WIDTH - DISPARITY) / WIDTH)


def test_pairs_are_prepared_at_the_size_at_which_they_are_matched(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, scale=1.5)
    assert prepared.smallest == (48, 96)
    assert Folder(prepared.training)[0].left.shape == (48, 96, 3)
    assert Folder(prepared.held_out)[0].left.shape == (48, 96, 3)


def test_nothing_to_train_on_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to train on") as caught:
        prepare(tmp_path, on_right=30.0)
    assert "\n" not in str(caught.value)


def test_a_pair_of_different_sizes_is_named(tmp_path: Path) -> None:
    (name, left, right), *_ = some_pairs(1)
    pairs = [(name, left, right), ("wrong", left, right[:, :-3])]
    with pytest.raises(InputError, match="The pair wrong cannot be used: its images differ in size"):
        prepare_pairs(pairs, {0}, FakeEngine(3.0).matcher, lambda _width: 1.0, LabelRule(), tmp_path)


@pytest.mark.parametrize(
    ("agreement", "photometric", "procedural", "words"),
    [
        ((0.8, 0.81), (0.10, 0.09), (1.0, 1.09), []),
        ((0.8, 0.80), (0.10, 0.09), (1.0, 1.0), ["agree"]),
        ((0.8, 0.85), (0.10, 0.10), (1.0, 1.0), ["photometric"]),
        ((0.8, 0.85), (0.10, 0.09), (1.0, 1.11), ["forgotten"]),
        ((0.8, 0.7), (0.10, 0.2), (1.0, 2.0), ["agree", "photometric", "forgotten"]),
    ],
)
def test_weights_are_better_only_if_they_are_in_every_way(
    agreement: tuple[float, float],
    photometric: tuple[float, float],
    procedural: tuple[float, float],
    words: list[str],
) -> None:
    found = Scores(Change(*agreement), Change(*photometric), Change(*procedural)).shortcomings
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))


def recipe_for(tmp_path: Path, weights: Path, smallest: tuple[int, int]):  # type: ignore[no-untyped-def]
    pairs = PreparedPairs(tmp_path, tmp_path, 3, 1, 0.5, smallest, ())
    return adaptation_recipe(checkpoint.read(weights), weights, pairs, FineTuning(None, 5, seed=7, threads=1))


def test_the_recipe_fits_the_network_and_the_images(tmp_path: Path) -> None:
    fast = recipe_for(tmp_path, files.find("aanet_fast"), (375, 1242))
    assert fast.stage[0].crop == (288, 448)
    assert fast.stage[0].loss == "cells"
    assert fast.stage[0].score_weight > 0
    assert (fast.stage[0].steps, fast.stage[0].minutes, fast.seed) == (5, None, 7)
    small = recipe_for(tmp_path, files.find("aanet_fast"), (100, 130))
    assert all(
        side % 32 == 0 and side <= limit for side, limit in zip(small.stage[0].crop, (100, 130), strict=True)
    )


@pytest.mark.parametrize(("heads", "loss"), [(False, "finest"), (True, "pyramid")])
def test_random_heads_are_not_supervised(tmp_path: Path, heads: bool, loss: str) -> None:
    path = tmp_path / "weights.safetensors"
    checkpoint.save(build_small("aanet", 48, training_heads=heads), path)
    recipe = recipe_for(tmp_path, path, (200, 200))
    assert recipe.stage[0].loss == loss
    assert recipe.stage[0].score_weight == 0


def test_half_of_the_pairs_are_procedural(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    weights = files.find("aanet_fast")
    recipe = adaptation_recipe(checkpoint.read(weights), weights, prepared, FineTuning(None, 1, seed=0))
    stage = recipe.stage[0]
    mixture = open_mixture(recipe.data, stage.crop, stage.scene_disparity or 192)
    own, procedural = mixture.counts
    assert own == procedural
    assert {dataset.name for dataset in mixture.datasets} == {"folder", "synthetic"}
