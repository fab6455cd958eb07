"""The recipes say what the paper says (section 4.1 and the supplement)."""

from __future__ import annotations

import dataclasses
import math

import pytest

from aanet.models import zoo
from aanet.training.bundled_recipes import names
from aanet.training.recipe import Recipe, load_recipe

KITTI_MILESTONES = (400, 600, 800, 900)


def recipe(name: str) -> Recipe:
    return load_recipe(name)


IN_PAPER = sorted(name for name, card in zoo.NETWORKS.items() if card.in_paper)


def test_every_network_of_the_paper_has_a_scene_flow_recipe() -> None:
    found = {each.removeprefix("sceneflow-") for each in names() if each.startswith("sceneflow-")}
    assert found == set(IN_PAPER)


@pytest.mark.parametrize("name", IN_PAPER)
def test_scene_flow_schedule(name: str) -> None:
    loaded = recipe(f"sceneflow-{name}")
    (stage,) = loaded.stage
    assert loaded.network.name == name
    assert loaded.network.start_from == ""
    assert [(data.name, data.split) for data in loaded.data] == [("sceneflow", "train")]
    assert stage.crop == (288, 576)
    assert (stage.batch, stage.unit, stage.length) == (64, "epochs", 64)
    assert stage.learning_rate == 1e-3
    assert (stage.schedule, stage.milestones, stage.factor) == ("milestones", (20, 30, 40, 50, 60), 0.5)
    assert (stage.loss, stage.trains, stage.frozen_batch_norm) == ("pyramid", "all", False)


@pytest.mark.parametrize(("network", "crop"), [("aanet", (336, 960)), ("aanet_plus", (288, 1152))])
def test_mixed_kitti_schedule(network: str, crop: tuple[int, int]) -> None:
    loaded = recipe(f"kitti-mixed-{network}")
    (stage,) = loaded.stage
    assert loaded.network.name == network
    assert f"sceneflow-{network}/" in loaded.network.start_from
    assert [(data.name, data.pseudo_labels) for data in loaded.data] == [
        ("kitti2012", True),
        ("kitti2015", True),
    ]
    assert stage.crop == crop
    assert (stage.batch, stage.unit, stage.length) == (32, "epochs", 1000)
    assert stage.learning_rate == 1e-3
    assert (stage.schedule, stage.milestones, stage.factor) == ("milestones", KITTI_MILESTONES, 0.5)
    assert (stage.loss, stage.frozen_batch_norm) == ("pyramid", False)


@pytest.mark.parametrize("year", ["2012", "2015"])
@pytest.mark.parametrize(
    ("network", "crop", "batch", "frozen"),
    [("aanet", (336, 960), 32, False), ("aanet_plus", (384, 1248), 28, True)],
)
def test_single_kitti_schedule(
    year: str, network: str, crop: tuple[int, int], batch: int, frozen: bool
) -> None:
    loaded = recipe(f"kitti{year}-{network}")
    (stage,) = loaded.stage
    assert loaded.network.name == network
    assert f"kitti-mixed-{network}/" in loaded.network.start_from
    assert [(data.name, data.pseudo_labels) for data in loaded.data] == [(f"kitti{year}", True)]
    assert stage.crop == crop
    assert (stage.batch, stage.unit, stage.length) == (batch, "epochs", 1000)
    assert stage.learning_rate == 1e-4
    assert (stage.schedule, stage.milestones, stage.factor) == ("milestones", KITTI_MILESTONES, 0.5)
    assert (stage.loss, stage.frozen_batch_norm) == ("finest", frozen)


@pytest.mark.parametrize("name", names())
def test_optimizer_range_and_augmentation(name: str) -> None:
    loaded = recipe(name)
    assert loaded.network.max_disparity == 192
    # Features of aanet_fast have no scale of their own, so that only the decay limits it.
    assert loaded.optimizer.weight_decay == (0.02 if loaded.network.name == "aanet_fast" else 1e-4)
    assert loaded.optimizer.betas == (0.9, 0.999)
    assert loaded.optimizer.offset_factor == 0.1
    if name.startswith(("sceneflow-", "kitti")):
        assert loaded.optimizer.name == "adam"
        assert loaded.optimizer.clip_norm == 0
        augmentation = loaded.augmentation
        assert (augmentation.color, augmentation.vertical_flip) == (True, 0.5)
        assert (augmentation.asymmetric_color, augmentation.erase, augmentation.vertical_shift) == (0, 0, 0)
        assert (augmentation.log2_scale, augmentation.log2_stretch) == ((0, 0), 0)


@pytest.mark.parametrize("name", names())
def test_crops_fit_their_network(name: str) -> None:
    loaded = recipe(name)
    network = zoo.build(loaded.network.name)
    for stage in loaded.stage:
        network.sizes.check(*stage.crop, stage.name)


def test_the_synthetic_recipe_trains_parts_before_the_whole() -> None:
    loaded = recipe("synthetic-cpu")
    trained = [stage.trains for stage in loaded.stage]
    assert trained[:2] == ["features", "aggregation"]
    assert set(trained[2:]) == {"all"}
    assert all(stage.unit == "minutes" for stage in loaded.stage)
    areas = [math.prod(stage.crop) for stage in loaded.stage]
    assert areas == sorted(areas)  # small crops first
    assert loaded.network.initialization == "matching"
    assert loaded.run.ema_decay > 0


@pytest.mark.parametrize("name", ["synthetic-cpu-further", "synthetic-cpu-wide", "synthetic-cpu-longer"])
def test_later_recipes_go_on_from_the_package_with_frozen_batch_norm(name: str) -> None:
    first, later = recipe("synthetic-cpu"), recipe(name)
    assert later.network.start_from == "aanet"
    assert later.optimizer == first.optimizer
    assert all(stage.frozen_batch_norm for stage in later.stage)  # one pair per process
    assert later.stage[-1].trains == "all"
    assert later.stage[-1].schedule == "cosine"


def test_the_wide_recipe_differs_in_its_scenes_and_its_stage_alone() -> None:
    further, wide = recipe("synthetic-cpu-further"), recipe("synthetic-cpu-wide")
    assert dataclasses.replace(wide, stage=further.stage, data=further.data) == further
    assert math.prod(wide.stage[0].crop) > math.prod(further.stage[-1].crop)


def test_the_longer_recipe_sees_larger_crops_while_the_refinement_waits() -> None:
    wide, longer = recipe("synthetic-cpu-wide"), recipe("synthetic-cpu-longer")
    assert dataclasses.replace(longer, stage=wide.stage, data=wide.data) == wide
    first, last = longer.stage
    assert (first.trains, last.trains) == ("aggregation", "all")
    assert math.prod(first.crop) > math.prod(last.crop)
    assert first.schedule == "constant"  # the second stage takes the learning rate down
    assert longer.data[0].world_seed != wide.data[0].world_seed  # pairs that have not been seen
