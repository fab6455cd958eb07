"""Recipes: typed, strict about keys, and changed from the command line."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aanet.errors import AanetError, InputError, ReadError
from aanet.synthetic import SyntheticWorld
from aanet.training.batches import open_source
from aanet.training.recipe import Recipe, load_recipe, read_table
from aanet.training.schema import build

MINIMAL = """
[network]
name = "aanet"
[[data]]
name = "synthetic"
[[stage]]
name = "first"
crop = [144, 336]
batch = 4
learning_rate = 1e-3
steps = 10
"""


def load(tmp_path: Path, text: str = MINIMAL, *overrides: str) -> Recipe:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    return load_recipe(path, list(overrides))


def test_values_have_the_types_of_their_fields(tmp_path: Path) -> None:
    recipe = load(tmp_path)
    assert recipe.stage[0].crop == (144, 336)
    assert recipe.stage[0].unit == "steps"
    assert recipe.stage[0].length == 10
    assert recipe.optimizer.weight_decay == 1e-4


def test_kinds_of_scenes_reach_the_world(tmp_path: Path) -> None:
    text = MINIMAL.replace('"synthetic"', '"synthetic"\nkinds = { room = 1, photo = 3.0 }')
    world = open_source(load(tmp_path, text).data[0], (144, 336), 96)
    assert isinstance(world, SyntheticWorld)
    assert dict(zip(world.kinds, world.chances, strict=True)) == {"room": 0.25, "photo": 0.75}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + "learning_rat = 1\n", "unknown key 'learning_rat'; did you mean 'learning_rate'"),
        ("speed = 3\n" + MINIMAL, "recipe.toml has an unknown key 'speed'; did you mean 'seed'"),
        (MINIMAL + "[run]\nworker = 3\n", "'run' has an unknown key 'worker'; did you mean 'workers'"),
        (MINIMAL + "[optimizer]\nname = 'sgd'\n", "must be one of 'adam', 'adamw', 'muon'; it is 'sgd'"),
        (MINIMAL.replace("batch = 4", "batch = 4.5"), "'batch' must be a whole number; it is 4.5"),
        (MINIMAL.replace("[144, 336]", "[144]"), "'crop' must have 2 entries; it has 1"),
        (MINIMAL.replace("[144, 336]", "144"), "'crop' must be a list; it is 144"),
        (MINIMAL.replace("batch = 4", ""), "the key 'batch' is missing"),
        (MINIMAL + "minutes = 3\n", "exactly one of 'epochs', 'steps' and 'minutes'"),
        (MINIMAL + "accumulate = 3\n", "'batch' must be a positive multiple of 'accumulate'"),
        (MINIMAL + "schedule = 'milestones'\n", "'milestones' must be given"),
        (
            MINIMAL + "trains = 'features'\nscore_weight = 1.0\n",
            "'score_weight' needs aggregation scores",
        ),
        (MINIMAL.replace("1e-3", "-1"), "'learning_rate' must be positive"),
        (MINIMAL.replace("[[data]]", "[data]"), "'data' must be a list"),
        ("[network]\nname = 'aanet'\ndata = []\n", "the key 'data' is missing"),
        (MINIMAL.replace('"synthetic"', '"synthetic"\nkinds = 3'), "'kinds' must be a table; it is 3"),
        (
            MINIMAL.replace('"synthetic"', '"synthetic"\nkinds = { room = "much" }'),
            "'kinds', 'room' must be a number; it is 'much'",
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"absent\.toml does not exist; expected a recipe"):
        load_recipe(tmp_path / "absent.toml")
    with pytest.raises(ReadError, match=r"recipe\.toml is not valid TOML"):
        load(tmp_path, "[network\n")


def test_overrides_reach_tables_lists_and_sections_that_the_file_lacks(tmp_path: Path) -> None:
    recipe = load(
        tmp_path,
        MINIMAL,
        "seed=7",
        "stage.0.batch=8",
        "stage.first.crop=[96, 192]",
        "run.workers=0",
        "data.0.textures=photos/all",
        "optimizer.name=adamw",
        "augmentation.color=false",
    )
    assert recipe.seed == 7
    assert recipe.stage[0].batch == 8
    assert recipe.stage[0].crop == (96, 192)
    assert recipe.run.workers == 0
    assert recipe.data[0].textures == "photos/all"
    assert recipe.optimizer.name == "adamw"
    assert recipe.augmentation.color is False


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stage.0.batc=8", "unknown key 'batc'; did you mean 'batch'"),
        ("stage.fist.batch=8", "there is no entry 'fist'; did you mean 'first'"),
        ("stage.3.batch=8", "there is no entry '3'"),
        ("seed", "must have the form key=value"),
        ("stage.batch=8", "'stage' is not a table of values"),
        ("network.name.x=8", "'network.name' is not a table of values"),
        ("network.name.x.y=8", "'x' is not a key, because its parent is the value 'aanet'"),
    ],
)
def test_overrides_that_hit_nothing_are_named(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, MINIMAL, override)
    assert message in str(caught.value)


def test_a_recipe_extends_another(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(MINIMAL + "[optimizer]\nname = 'adamw'\nclip_norm = 5\n")
    recipe = load(
        tmp_path, "extends = 'base.toml'\n[optimizer]\nclip_norm = 2\n[[data]]\nname = 'kitti2015'\n"
    )
    assert recipe.optimizer.name == "adamw"
    assert recipe.optimizer.clip_norm == 2
    assert [data.name for data in recipe.data] == ["kitti2015"]
    assert recipe.stage[0].batch == 4


def test_the_digest_tells_recipes_apart(tmp_path: Path) -> None:
    assert load(tmp_path).digest() == load(tmp_path).digest()
    assert load(tmp_path).digest() != load(tmp_path, MINIMAL, "seed=5").digest()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stage.0.learning_rate=nan", "'learning_rate' must be a finite number; it is nan"),
        ("stage.0.learning_rate=inf", "must be a finite number"),
        (f"stage.0.learning_rate={'9' * 400}", "must be a finite number"),
        ("stage.0.crop=[0, 64]", "'crop', entry 0 must be from 1"),
        ("stage.0.warmup_steps=-1", "'warmup_steps' must be from 0"),
        ("augmentation.vertical_flip=2", "'vertical_flip' must be from 0 to 1"),
        ("network.max_disparity=0", "'max_disparity' must be from 1"),
        ("stage.0.batch=9000000000", "'batch' must be from 0 to 65536"),
        ("run.workers=100000", "'workers' must be from 0 to 1024"),
        ("run.threads=100000", "'threads' must be from 0 to 1024"),
        ("data.0.length=1000000000", "'length' must be from 1 to 1e+07"),
        ("stage.0.crop=[48, 100000]", "'crop', entry 1 must be from 1 to 32767"),
        ("optimizer.betas=[0.9, 1.0]", "'betas', entry 1 must be from 0 to 0.999999"),
        ("augmentation.log2_scale=[0, 1000]", "'log2_scale', entry 1 must be from -4 to 4"),
        ("augmentation.log2_scale=[1, 0]", "'log2_scale' must have the smallest value first"),
        ("augmentation.erase_px=[90, 40]", "'erase_px' must have the smallest value first"),
        (f"seed={2**60}", "'seed' must be a finite number"),
        ("seed=" + "[" * 10_000, "'seed' must be a whole number"),
    ],
)
def test_numbers_are_finite_and_within_their_bounds(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, MINIMAL, override)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        'extends = "recipe.toml"',
        "extends = 3",
        "a = " + "[" * 20_000,
        "a = " + "9" * 10_000,
        "a = 2020-13-77",
        "\ufeff\0",
        " " * 1_100_000,
    ],
    ids=lambda text: repr(text[:10]),
)
def test_a_hostile_recipe_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(ReadError) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


HOSTILE = (float("nan"), float("inf"), -1, 0, 1, 1e300, 2**70, "", "x" * 1000, True, [], [1, 1], {}, {"a": 1})


def keys(spec: type, prefix: str = "") -> Iterator[str]:
    """The dotted keys of all values of a recipe."""
    for field in dataclasses.fields(spec):
        kind = typing.get_type_hints(spec)[field.name]
        parts = [part for part in (kind, *typing.get_args(kind)) if dataclasses.is_dataclass(part)]
        is_list = typing.get_origin(kind) is tuple
        if parts and not (is_list and prefix):
            yield from keys(parts[0], f"{prefix}{field.name}.{'0.' if is_list else ''}")
        else:
            yield prefix + field.name


def test_no_value_of_any_key_raises_another_error(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(MINIMAL)
    names, refused = list(keys(Recipe)), 0
    assert {"stage.0.crop", "run.workers", "augmentation.erase_px", "validation.data", "seed"} <= {*names}
    for name in names:
        for value in HOSTILE:
            table = read_table(tmp_path / "recipe.toml")
            *parents, last = name.split(".")
            target: Any = table
            for part in parents:
                target = target[int(part)] if part.isdigit() else target.setdefault(part, {})
            target[last] = value
            try:
                recipe = build(Recipe, table, "recipe.toml")
            except AanetError as error:
                refused += "\n" not in str(error)
            else:
                json.dumps(recipe.as_dict(), allow_nan=False)  # what is accepted is finite
    assert refused > 8 * len(names)


def test_a_bundled_recipe_is_found_by_its_name_and_can_be_extended(tmp_path: Path) -> None:
    bundled = load_recipe("synthetic-cpu")
    assert bundled.stage
    assert load(tmp_path, "extends = 'synthetic-cpu'\n[run]\nworkers = 3\n").run.workers == 3
    own = tmp_path / "synthetic-cpu.toml"
    own.write_text(MINIMAL)
    assert load_recipe(own).stage[0].name == "first"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("synthetic-cp", "did you mean 'synthetic-cpu', '"),
        ("sceneflow-aanet_pluss", "did you mean 'sceneflow-aanet_plus'"),
        ("zzz", "`aanet train --list` shows all of them"),
        ("recipes/synthetic-cpu.toml", "the bundled recipe of that name is called 'synthetic-cpu'"),
        ("mine.toml", "mine.toml does not exist; expected a recipe"),
        ("no/such", "no/such does not exist; expected a recipe"),
        ("a" * 5000, "There is no bundled recipe"),
        ("\0", "There is no bundled recipe"),
    ],
    ids=lambda text: repr(text[:10]),
)
def test_a_recipe_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReadError) as caught:
        load_recipe(source)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_description_is_neither_inherited_nor_part_of_the_digest(tmp_path: Path) -> None:
    described = load(tmp_path, "description = 'Mine'\n" + MINIMAL)
    assert described.description == "Mine"
    assert described.digest() == load(tmp_path).digest()
    assert load(tmp_path, "extends = 'synthetic-cpu'\n").description == ""
