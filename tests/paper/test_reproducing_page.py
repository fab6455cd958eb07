"""docs/reproducing.md has the numbers of the paper; the commands there and on the training pages exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from aanet.cli.main import app
from aanet.data.datasets import DATASETS
from aanet.evaluation import paper
from aanet.training.recipe import load_recipe

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reproducing.md").read_text(encoding="utf-8")


def test_the_expected_numbers_are_those_of_the_paper() -> None:
    for name, row in paper.ABLATION.items():
        on_sceneflow = f"{row.sceneflow_epe:.2f}, {row.sceneflow_bad1} %"
        on_kitti = f"{row.kitti2015_epe:.2f}, {row.kitti2015_d1_all:.2f} %"
        assert f"| {on_sceneflow} | {on_kitti} | `sceneflow-{name}` |" in PAGE
    for name, comparison in paper.COMPARISON_3D.items():
        values = f"{comparison.epe:.2f}" + ("" if comparison.bad1 is None else f", {comparison.bad1} %")
        assert f"| {comparison.method} | {values} | `sceneflow-{name}` |" in PAGE
    for name in ("aanet", "aanet_plus"):
        kitti = paper.KITTI[name]
        of_2012, of_2015 = (kitti.out_noc, kitti.out_all), (kitti.d1_bg, kitti.d1_all)
        cells = (
            ", ".join(f"{value:.2f} %" for value in pair) for pair in (of_2012, of_2015) if None not in pair
        )
        assert f"| {kitti.method} | {' | '.join(cells)} | `sceneflow-{name}`" in PAGE
        assert f"{paper.SCENE_FLOW[name].epe:.2f} (`sceneflow-{name}`)" in PAGE


def test_the_steps_are_those_of_the_recipes() -> None:
    pairs = {
        "sceneflow-aanet": 35_454,
        "kitti-mixed-aanet": 394,
        "kitti2012-aanet": 194,
        "kitti2015-aanet": 200,
    }
    for name, count in pairs.items():
        (stage,) = load_recipe(name).stage
        assert f"{-(-int(stage.length) * count // stage.batch):,}" in PAGE


def test_every_dataset_is_linked() -> None:
    for name in ("sceneflow", "kitti2012", "kitti2015", "middlebury", "eth3d"):
        assert f"]({DATASETS[name].CARD.source}) | `aanet data check {name} " in PAGE


def commands(page: str) -> list[list[str]]:
    """The words after `aanet` in every fenced command without a language, without comments."""
    text = (DOCS / page).read_text(encoding="utf-8").replace("\\\n", " ")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [
        re.split(r"\s+#", line)[0]
        for language, block in fenced
        if not language
        for line in block.splitlines()
    ]
    return [shlex.split(line.partition("aanet ")[2]) for line in lines if "aanet " in line]


@pytest.mark.parametrize("page", ["reproducing.md", "training.md", "fine-tuning.md"])
def test_every_command_and_option_exists(page: str) -> None:
    group = get_command(app)
    found = commands(page)
    assert len(found) > 4
    for words in found:
        command, arguments = group, words
        while arguments and arguments[0] in getattr(command, "commands", {}):
            command, arguments = command.commands[arguments[0]], arguments[1:]  # type: ignore[attr-defined]
        assert command is not group, words
        parsed = command.make_context(words[0], list(arguments)).params  # does not run it
        if words[0] == "train" and parsed["recipe"] and not parsed["recipe"].endswith(".toml"):
            assert load_recipe(parsed["recipe"], parsed["overrides"]).stage
