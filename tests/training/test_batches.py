"""Pairs come in one order, whoever loads them."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

from aanet.data import transforms
from aanet.data.sample import StereoSample
from aanet.errors import AanetError, InputError, UnsupportedError
from aanet.training.batches import (
    AugmentedPairs,
    PairStream,
    Share,
    StereoBatch,
    collate,
    make_augmentation,
    open_mixture,
    open_stages,
    pairs_per_process,
)
from aanet.training.recipe import AugmentationSpec, DataSpec, Recipe, StageSpec, TrainedNetworkSpec


class Squares:
    """Pairs whose pixels are all different, so that crops are."""

    name = "squares"

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> StereoSample:
        if index == 6:
            raise AanetError("squares 6 is broken.")
        image = np.random.default_rng(index).integers(0, 256, (20, 30, 3)).astype(np.uint8)
        return StereoSample(f"squares {index}", image, image.copy(), np.full((20, 30), 5, np.float32))


def take(stream: PairStream, count: int) -> list[list[tuple[int, int]]]:
    return list(itertools.islice(iter(stream), count))


def test_an_epoch_holds_every_pair_once() -> None:
    draws = [draw for batch in take(PairStream(7, 0, Share(pairs=3)), 7) for draw in batch]
    for epoch in range(3):
        assert sorted(index for each, index in draws if each == epoch) == list(range(7))
    assert [index for _, index in draws[:7]] != [index for _, index in draws[7:14]]


def test_a_stream_begins_anywhere() -> None:
    whole = take(PairStream(7, 0, Share(pairs=2)), 10)
    assert take(PairStream(7, 0, Share(start=6, pairs=2)), 7) == whole[3:]


def test_processes_share_the_stream_without_overlap() -> None:
    joined = take(PairStream(7, 0, Share(pairs=4)), 3)
    parts = [take(PairStream(7, 0, Share(pairs=2, rank=rank, world_size=2)), 3) for rank in (0, 1)]
    assert [a + b for a, b in zip(*parts, strict=True)] == joined


@pytest.mark.parametrize("length", [1, 2, 7, 23, 61])
@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5])
def test_an_epoch_holds_every_pair_once_over_all_processes(processes: int, length: int) -> None:
    for pairs in (1, 3):
        rounds = -(-3 * length // (pairs * processes))
        parts = [
            take(PairStream(length, 5, Share(pairs=pairs, rank=rank, world_size=processes)), rounds)
            for rank in range(processes)
        ]
        draws = [draw for batches in zip(*parts, strict=True) for batch in batches for draw in batch]
        # What is left of an epoch begins the batch that the next one completes: none is dropped or repeated.
        for epoch in range(3):
            assert sorted(index for each, index in draws if each == epoch) == list(range(length))
        assert [epoch for epoch, _ in draws] == sorted(epoch for epoch, _ in draws)


def test_the_order_of_pairs_outlives_a_change_of_processes() -> None:
    batch, steps = 60, 2  # a step has the same pairs for every number of processes
    expected = [draw for part in take(PairStream(23, 5, Share(pairs=batch)), 5 * steps) for draw in part]
    found = []
    for number, processes in enumerate((1, 5, 2, 4, 3)):
        parts = [
            take(PairStream(23, 5, Share(number * steps * batch, batch // processes, rank, processes)), steps)
            for rank in range(processes)
        ]
        found += [draw for batches in zip(*parts, strict=True) for part in batches for draw in part]
    assert found == expected


def test_a_batch_that_cannot_be_split_is_refused() -> None:
    stage = StageSpec(crop=(48, 96), batch=12, learning_rate=1e-3, name="all", accumulate=2, steps=1)
    assert [pairs_per_process(stage, count) for count in (1, 2, 3, 6)] == [6, 3, 2, 1]
    with pytest.raises(UnsupportedError, match="a batch of 12 pairs cannot be split evenly into 2 parts"):
        pairs_per_process(stage, 4)


def test_augmentation_depends_on_seed_epoch_and_pair_only() -> None:
    pairs = AugmentedPairs(Squares(), transforms.RandomCrop(8, 9), seed=3)
    first, again = pairs[(0, 2)], pairs[(0, 2)]
    others = [pairs[(epoch, 2)] for epoch in range(1, 6)]
    assert isinstance(first, StereoSample)
    assert isinstance(again, StereoSample)
    np.testing.assert_array_equal(first.left, again.left)
    assert any(isinstance(o, StereoSample) and not np.array_equal(first.left, o.left) for o in others)


def test_a_broken_pair_stands_for_its_batch() -> None:
    pairs = AugmentedPairs(Squares(), transforms.RandomCrop(8, 9), seed=3)
    result = collate([pairs[(0, 1)], pairs[(0, 6)]])
    assert isinstance(result, AanetError)
    assert str(result) == "squares 6 is broken."


def test_pairs_without_any_truth_are_refused() -> None:
    class Blind(Squares):
        def __getitem__(self, index: int) -> StereoSample:
            image = np.zeros((20, 30, 3), np.uint8)
            return StereoSample(f"blind {index}", image, image)

    result = AugmentedPairs(Blind(), transforms.RandomCrop(8, 9), seed=3)[(0, 1)]
    assert isinstance(result, AanetError)
    assert "blind 1 has no ground truth" in str(result)


def test_collate_makes_the_unknown_explicit() -> None:
    image = np.zeros((2, 3, 3), np.uint8)
    truth = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    known = np.array([[True, False, True], [True, True, True]])
    sparse = StereoSample("sparse", image, image, truth, known, visible=known, pseudo_disparity=truth * 2)
    dense = StereoSample("dense", image, image, truth)
    batch = collate([sparse, dense])
    assert isinstance(batch, StereoBatch)
    assert batch.names == ["sparse", "dense"]
    assert batch.left.shape == (2, 3, 2, 3)
    assert batch.left.dtype == torch.uint8
    assert torch.equal(batch.truth.disparity[0], torch.tensor([[1.0, 0, 3], [4, 5, 6]]))
    assert torch.equal(batch.truth.disparity[1], torch.from_numpy(truth))
    assert torch.equal(batch.truth.visible[0], torch.from_numpy(known))
    assert bool(batch.truth.visible[1].all())
    assert torch.equal(batch.truth.pseudo, torch.stack([torch.from_numpy(truth * 2), torch.zeros(2, 3)]))


def test_a_recipe_switches_transforms_on() -> None:
    plain = make_augmentation(AugmentationSpec(), (8, 9))
    assert [type(step).__name__ for step in plain.transforms] == [
        "RandomCrop",
        "RandomVerticalFlip",
        "RandomColor",
    ]
    rich = make_augmentation(
        AugmentationSpec(color=False, erase=0.5, vertical_shift=0.5, log2_scale=(-0.2, 0.4)), (8, 9)
    )
    assert [type(step).__name__ for step in rich.transforms] == [
        "RandomScaleCrop",
        "RandomVerticalFlip",
        "RandomVerticalShift",
        "RandomErase",
    ]


def test_weights_are_for_all_datasets_or_none() -> None:
    specs = [DataSpec("synthetic", weight=1.0), DataSpec("synthetic")]
    with pytest.raises(InputError, match=r"all \[\[data\]\] entries of a recipe must have a weight, or none"):
        open_mixture(specs, (48, 96), 24)


def test_scenes_have_the_size_of_the_data_or_of_the_stage_or_of_the_crop() -> None:
    crop, scene, data = (32, 64), (48, 96), (64, 128)
    stages = (
        StageSpec(crop, 1, 1e-3, steps=1, scene_size=scene),
        StageSpec(crop, 1, 1e-3, steps=1),
    )

    def sizes(spec: DataSpec) -> list[tuple[int, int]]:
        recipe = Recipe(TrainedNetworkSpec("aanet_fast"), (spec,), stages)
        return [mixed[0].left.shape[:2] for mixed in open_stages(recipe)]

    assert sizes(DataSpec("synthetic")) == [scene, crop]
    assert sizes(DataSpec("synthetic", size=data)) == [data, data]


BROKEN_WORLD = """
from aanet.training import batches

batches.STOP_GRACE_SECONDS = 1

class Broken:
    def __getitem__(self, draw):
        raise ZeroDivisionError("a bug in a worker")

loader = batches.make_loader(Broken(), batches.PairStream(10, 0, batches.Share()), workers=1)
next(iter(loader))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="workers there get no signals")
def test_a_process_ends_after_an_error_in_its_worker() -> None:
    command = [sys.executable, "-c", BROKEN_WORLD]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "a bug in a worker" in ended.stderr
