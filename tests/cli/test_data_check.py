"""`aanet data check` and `aanet data stats` as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aanet.cli.data_check import check
from aanet.cli.data_stats import stats
from aanet.errors import AanetError
from helpers import layouts

app = typer.Typer()
app.command()(check)
app.command()(stats)


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, AanetError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def test_check_prints_the_tree_and_what_was_found(tmp_path: Path) -> None:
    text = run("check", "kitti2015", layouts.kitti2015(tmp_path))
    assert "train: 4 of 200 pairs" in text
    assert "✓ training/image_3/*_10.png" in text
    assert "training/disp_pseudo_0/*_10.png" in text
    assert "Pairs of each split: train 2, val 2, all 4" in text
    assert "Usable" in text


def test_check_names_what_is_missing_and_exits_with_1(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    (tmp_path / "training/image_3/000002_10.png").unlink()
    text = run("check", "kitti2015", tmp_path, code=1)
    assert "✗ training/image_3/*_10.png" in text
    assert "Missing: training/image_3/000002_10.png" in text
    assert "Usable" not in text


def test_check_of_an_empty_folder_says_where_the_data_comes_from(tmp_path: Path) -> None:
    text = run("check", "eth3d", tmp_path, code=1)
    assert "train: absent" in text
    assert "https://www.eth3d.net" in text


def test_check_as_json(tmp_path: Path) -> None:
    facts = json.loads(run("check", "sceneflow", layouts.sceneflow(tmp_path), "--json"))
    assert facts["usable"] is True
    assert facts["splits"] == {"train": 4, "test": 1}
    first = facts["groups"][0]
    assert (first["title"], first["complete"]) == ("FlyingThings3D train finalpass", 22390)
    assert first["parts"][0]["found"] == 2


def test_stats_print_a_histogram_and_draw_it(tmp_path: Path) -> None:
    layouts.folder(tmp_path / "data")
    text = run("stats", "folder", tmp_path / "data", "--output", tmp_path / "histogram.png")
    assert "folder, split all: 3 of 3 pairs read" in text
    assert "24×40 (3)" in text
    rows = [line for line in text.splitlines() if " – " in line]
    shares = [float(line.split("–")[1].split()[1]) for line in rows]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    assert shares[:2] == [0, 0]  # the smallest disparity is 2
    assert cv2.imread(str(tmp_path / "histogram.png")).std() > 5


def test_stats_as_json_equal_a_loop(tmp_path: Path) -> None:
    facts = json.loads(run("stats", "folder", layouts.folder(tmp_path), "--json"))
    truth = layouts.truth()
    known = [float(value) for value in truth.ravel() if np.isfinite(value)]
    counts = [3 * sum(low <= value < low + 1 for value in known) for low in range(7)]
    assert facts["histogram"] == counts
    assert facts["largest_px"] == max(known)
    assert facts["known"] == pytest.approx(len(known) / truth.size)
    assert facts["percent_beyond_192_px"] == 0
    occluded = layouts.occluded() & np.isfinite(truth)
    assert facts["occluded"] == pytest.approx(occluded.sum() / len(known))


def test_splits_of_an_own_folder_are_counted_and_selected(tmp_path: Path) -> None:
    layouts.folder(tmp_path)
    (tmp_path / "val.txt").write_text("b\n")
    facts = json.loads(run("check", "folder", tmp_path, "--json"))
    assert facts["splits"] == {"all": 3, "train": 2, "val": 1}
    assert "split val: 1 of 1 pairs read" in run("stats", "folder", tmp_path, "--split", "val")
    (tmp_path / "val.txt").write_text("b\nz\n")
    with pytest.raises(AanetError, match=r"val\.txt, line 2: no pair is named 'z'"):
        run("check", "folder", tmp_path)
    table = tmp_path / "list.csv"
    table.write_text("left,right\nleft/a.png,right/a.png\n")
    with pytest.raises(AanetError, match=r"list\.csv is checked when it is read: aanet data stats"):
        run("check", "folder", table)


def test_stats_read_a_limited_number_of_pairs(tmp_path: Path) -> None:
    assert "2 of 3 pairs read" in run("stats", "folder", layouts.folder(tmp_path), "--limit", 2)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("stats", "kitti2015", "--split", "test"), "has no ground truth"),
        (("stats", "kitti2015", "--set", "render"), "must have the form name=value; got 'render'"),
        (("stats", "kitti2015", "--set", "render=x"), "kitti2015 has no option 'render'"),
        (("stats", "middlebury2006", "--set", "scale=x"), "positive number; got 'x'"),
        (
            ("stats", "folder", "--split", "test"),
            "folder has no split 'test'.* all, train, val",
        ),
        (("check", "nonsense"), "no dataset 'nonsense'"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: tuple[str, ...], part: str, tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    command, name, *options = arguments
    with pytest.raises(AanetError, match=part):
        run(command, name, tmp_path, *options)
