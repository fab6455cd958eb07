"""The ablation: four networks on the same pairs and features, which differ in their aggregation only."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from rich.console import Console

from aanet.errors import InputError
from aanet.models.weights import checkpoint
from aanet.training.ablation import NETWORKS, AblationFolder, run_ablation
from aanet.training.recipe import Recipe, load_recipe

RECIPE = """
[network]
name = "aanet"
max_disparity = 48
initialization = "matching"
[[data]]
name = "folder"
root = "{root}"
[optimizer]
name = "muon"
[[stage]]
name = "features"
trains = "features"
crop = [48, 96]
batch = 1
steps = 2
learning_rate = 1e-3
[[stage]]
name = "aggregation"
trains = "aggregation"
crop = [48, 96]
batch = 2
steps = 4
learning_rate = 1e-3
[run]
accelerator = "cpu"
workers = 0
ema_decay = 0.5
log_steps = 2
picture_steps = 0
"""
Errors = dict[int, dict[str, tuple[float, float]]]


@pytest.fixture(scope="module")
def recipe(pairs_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    path = tmp_path_factory.mktemp("recipe") / "small.toml"
    path.write_text(RECIPE.format(root=pairs_folder))
    return load_recipe(path)


def run(recipe: Recipe, folder: Path, stop_after: int | None = None) -> Errors:
    """Run a study; returns what it reported."""
    reported: Errors = {}

    def report(step: int, results: dict[str, tuple[float, float]]) -> None:
        reported[step] = results
        if step == stop_after:
            raise KeyboardInterrupt

    run_ablation(recipe, folder, Console(quiet=True), report)
    return reported


@pytest.fixture(scope="module")
def complete(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Errors]:
    folder = tmp_path_factory.mktemp("study")
    return folder, run(recipe, folder)


@pytest.mark.slow
def test_all_networks_keep_the_same_features_and_train_their_aggregation(
    complete: tuple[Path, Errors],
) -> None:
    files = AblationFolder(complete[0])
    features = None
    for name in NETWORKS:
        start, end = (
            checkpoint.load(files.start(name), training_heads=False),
            checkpoint.load(files.weights(name)),
        )
        features = features or start.features.state_dict()
        for network in (start, end):
            for key, value in network.features.state_dict().items():
                assert torch.equal(value, features[key]), (name, key)
        moved = [
            key
            for key, value in end.aggregation.named_parameters()
            if not torch.equal(value, start.aggregation.get_parameter(key))
        ]
        assert len(moved) > 10


@pytest.mark.slow
def test_networks_start_with_the_same_error_because_their_aggregation_is_the_identity(
    complete: tuple[Path, Errors],
) -> None:
    first = {name: epe for name, (_, epe) in complete[1][1].items()}
    assert set(first) == set(NETWORKS)
    # Without offsets and masks of one half, adaptive windows start as zero: what differs is CSA's activation.
    assert first["aanet"] == pytest.approx(first["aanet_no_isa"], rel=1e-4)
    assert first["aanet_no_csa"] == pytest.approx(first["aanet_no_isa_csa"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.extended
def test_a_study_that_was_killed_continues_with_the_same_result(
    recipe: Recipe, complete: tuple[Path, Errors], tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(recipe, tmp_path, stop_after=3)
    reported = run(recipe, tmp_path)
    assert list(reported) == [3, 4]  # from the checkpoint of step 2
    for step, results in reported.items():
        for name, values in results.items():
            assert values == pytest.approx(complete[1][step][name], rel=1e-4)
    assert run(recipe, tmp_path) == {}  # complete: nothing is trained


def test_a_folder_of_another_recipe_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    AblationFolder(tmp_path).recipe.write_text("another")
    with pytest.raises(InputError, match="another recipe"):
        run(recipe, tmp_path)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("network.name=stereonet_aa", "trains aanet in two stages"),
        ("stage.0.trains=all", "trains aanet in two stages"),
        ("stage.1.accumulate=2", "no 'accumulate'"),
        ("run.ema_decay=0", "ema_decay"),
    ],
)
def test_recipes_that_do_not_fit_are_refused(
    pairs_folder: Path, tmp_path: Path, override: str, message: str
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(RECIPE.format(root=pairs_folder))
    with pytest.raises(InputError, match=message):
        run(load_recipe(path, [override]), tmp_path / "study")
    assert not (tmp_path / "study").exists()
