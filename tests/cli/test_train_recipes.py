"""`aanet train --list`, `--show` and `--copy`: the recipes that come with the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.cli.recipes import complete_recipe
from aanet.data.datasets import DATASETS
from aanet.errors import AanetError
from aanet.models import zoo
from aanet.training import bundled_recipes
from aanet.training.recipe import load_recipe


def train(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["train", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list_says_what_each_recipe_is_and_needs() -> None:
    rows = json.loads(train("--list", "--json"))
    assert [row["name"] for row in rows] == bundled_recipes.names()
    text = train("--list")
    for row in rows:
        assert row["network"] in zoo.NETWORKS
        assert set(row["data"]) <= set(DATASETS)
        assert 0 < len(row["description"]) < 110
        assert row["length"].split()[1] in ("epochs", "minutes", "steps")
        assert f"\n    {row['description']}\n" in text
    by_name = {row["name"]: row for row in rows}
    assert by_name["synthetic-cpu"]["data"] == {}
    assert by_name["synthetic-cpu"]["length"] == "102 minutes"
    assert by_name["kitti2015-aanet"]["data"] == {"kitti2015": "data/KITTI2015"}
    (line,) = (line for line in text.splitlines() if line.startswith("kitti2015-aanet "))
    assert line.endswith("aanet, 1000 epochs, needs kitti2015 and the weights of kitti-mixed-aanet")


@pytest.mark.parametrize("name", bundled_recipes.names())
def test_a_copy_of_any_recipe_is_the_same_recipe_elsewhere(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    assert str(file) in train(name, "--copy", file)
    assert load_recipe(file).digest() == load_recipe(name).digest()
    assert train(file, "--show") == train(name, "--show") == file.read_text(encoding="utf-8")


def test_a_copy_replaces_no_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("precious")
    with pytest.raises(AanetError, match="already exists"):
        train("synthetic-cpu", "--copy", file)
    with pytest.raises(AanetError, match="no bundled recipe 'synthetic'"):
        train("synthetic", "--copy", tmp_path / "other.toml")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", r"Give a recipe.*--list"),
        ("--show", r"Give a recipe.*--list"),
        ("synthetic-cpu --list", "--list takes no recipe"),
        ("synthetic-cpu --show --copy FILE", "exclude each other"),
        ("synthetic-cpu --show --json", "--json prints a list"),
        ("synthetic-cpu --json", "add --list or --dry-run"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(words: str, message: str) -> None:
    with pytest.raises(AanetError, match=message):
        train(*words.split())


def test_names_and_files_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "synthetic-mine.toml").touch()
    assert complete_recipe("synthetic-cpu-f") == [
        "synthetic-cpu-fast",
        "synthetic-cpu-fast-longer",
        "synthetic-cpu-further",
    ]
    assert complete_recipe("synthetic-m") == ["synthetic-mine.toml"]
