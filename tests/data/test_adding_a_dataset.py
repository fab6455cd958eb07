"""A new dataset is one class with a card: every command that lists or reads datasets then has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.data.datasets import DATASETS, StereoDataset
from aanet.data.datasets.card import DatasetCard, Protocol, SubmissionFormat
from aanet.data.layout import Group
from aanet.training.batches import open_mixture
from aanet.training.recipe import load_recipe
from helpers import layouts


class Toy(StereoDataset):
    CARD = DatasetCard(
        name="toy",
        title="Toy pairs",
        source="https://example.org/toy",
        groups=(Group("train", "train", "a/*.png", "b/*.png", disparity="d/*.pfm", pseudo="p/*.pfm"),),
        splits=("train",),
        protocol=Protocol(
            split="train", metrics=("bad2", "epe"), average="pixels", description="as the toy benchmark does"
        ),
        submission=SubmissionFormat(splits=("train",), disparity="toy/{key}.pfm"),
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(DATASETS, "toy", Toy)
    for seed in range(2):
        layouts.write_pair(tmp_path / f"toy/a/{seed}.png", tmp_path / f"toy/b/{seed}.png", seed)
        layouts.write_pfm(tmp_path / f"toy/d/{seed}.pfm", layouts.truth())
    return tmp_path / "toy"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_data_commands_read_it(root: Path) -> None:
    assert json.loads(run("data", "check", "toy", root, "--json"))["usable"] is True
    assert "toy, split train: 2 of 2 pairs read" in run("data", "stats", "toy", root)


def test_it_is_evaluated_by_its_own_protocol(root: Path) -> None:
    results = json.loads(run("evaluate", "toy", root, "--model", "sgbm", "--json"))["results"]
    assert list(results[0]["metrics"]) == ["bad2", "epe"]
    assert results[0]["protocol"]["benchmark"] == "as the toy benchmark does"
    assert results[0]["metrics"]["epe"] == results[0]["over_pixels"]["epe"]


def test_a_submission_has_its_own_file_names(root: Path, tmp_path: Path) -> None:
    run("evaluate", "toy", root, "--model", "sgbm", "--submission", tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist() == ["toy/0.pfm", "toy/1.pfm"]


def test_pseudo_labels_are_written_and_a_recipe_trains_on_it(root: Path, tmp_path: Path) -> None:
    run("pseudo-label", "toy", root, "--model", "sgbm")
    recipe = tmp_path / "toy.toml"
    recipe.write_text(
        f"""
        [network]
        name = "aanet"
        [[data]]
        name = "toy"
        root = "{root}"
        pseudo_labels = true
        [[stage]]
        crop = [24, 36]
        batch = 1
        learning_rate = 1e-3
        steps = 1
        """
    )
    source = open_mixture(load_recipe(recipe).data, (24, 36), 192)
    assert (source.name, len(source)) == ("toy", 2)
    assert source[1].pseudo_disparity is not None


def test_the_help_lists_it() -> None:
    code = (
        "import sys\n"
        "from aanet.data.datasets import DATASETS\n"
        "DATASETS['toy'] = DATASETS['folder']\n"
        "from typer.testing import CliRunner\n"
        "from aanet.cli.main import app\n"
        "for command in (['data', 'check'], ['data', 'stats'], ['evaluate'], ['pseudo-label']):\n"
        "    text = ' '.join(CliRunner().invoke(app, [*command, '--help']).output.split())\n"
        "    assert 'or toy.' in text or ', toy;' in text, text\n"
        "assert 'numpy' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "COLUMNS": "200", "TERM": "dumb"}
    )
