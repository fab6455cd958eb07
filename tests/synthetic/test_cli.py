"""`aanet data synthesize` and `aanet data preview`, through a runner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aanet.cli.data_preview import preview
from aanet.cli.data_synthesize import synthesize
from aanet.data.datasets.sceneflow import SceneFlow
from aanet.errors import AanetError
from aanet.io.disparity import read_disparity
from aanet.io.images import read_image
from aanet.synthetic import SyntheticWorld
from aanet.synthetic.export import sequence_and_frame

app = typer.Typer()
app.command()(synthesize)
app.command()(preview)
SMALL = ("--height", "48", "--width", "96", "--max-disparity", "32", "--seed", "5")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_synthesized_pairs_are_read_back_as_scene_flow(tmp_path: Path, workers: str) -> None:
    result = CliRunner().invoke(app, ["synthesize", "-o", str(tmp_path), "-n", "3", "-j", workers, *SMALL])
    assert result.exit_code == 0, result.output
    assert "Wrote 3 pairs" in result.output
    world, dataset = SyntheticWorld((48, 96), 32, seed=5), SceneFlow(tmp_path)
    assert len(dataset) == 3
    for index in range(3):
        made, read = world[index], dataset[index]
        np.testing.assert_array_equal(read.left, made.left)
        np.testing.assert_array_equal(read.right, made.right)
        np.testing.assert_array_equal(read.disparity, made.disparity)
    right = tmp_path / "FlyingThings3D" / "disparity" / "TRAIN" / "A" / "0000" / "right" / "0006.pfm"
    np.testing.assert_array_equal(read_disparity(right), world[0].right_disparity)


def test_every_pair_has_a_place_of_its_own() -> None:
    places = {sequence_and_frame(index) for index in range(0, 250_000, 7)}
    assert len(places) == len(range(0, 250_000, 7))
    assert sequence_and_frame(0) == "A/0000/{side}/0006"
    assert sequence_and_frame(19) == "A/0001/{side}/0015"
    assert sequence_and_frame(100_000) == "B/0000/{side}/0006"


def test_preview_draws_four_pictures_of_each_scene(tmp_path: Path) -> None:
    target = tmp_path / "sheet.png"
    result = CliRunner().invoke(app, ["preview", "-o", str(target), "-n", "2", "--kind", "photo", *SMALL])
    assert result.exit_code == 0, result.output
    sheet = read_image(target)
    assert sheet.shape[0] > 2 * 48
    assert sheet.shape[1] > 4 * 96


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["synthesize", "-o", "{out}", "--textures", "{out}/none"], "does not exist"),
        (["synthesize", "-o", "{out}", "--height", "8"], "size"),
        (["synthesize", "-o", "{out}", "--max-disparity", "1"], "maximum disparity"),
        (["synthesize", "-o", "{file}/below", "-n", "1", *SMALL], "Cannot write"),
        (["preview", "-o", "{file}/below.png", "-n", "1", *SMALL], "Cannot write"),
        (["preview", "--kind", "castle"], "castle"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, command: list[str], words: str) -> None:
    (tmp_path / "file").write_text("in the way")
    filled = [part.format(out=tmp_path / "out", file=tmp_path / "file") for part in command]
    result = CliRunner().invoke(app, filled)
    assert isinstance(result.exception, AanetError)
    assert words in str(result.exception)
