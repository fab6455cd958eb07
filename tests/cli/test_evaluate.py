"""`aanet evaluate` as a user sees it, with stand-ins for the matchers."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aanet.cli.evaluate import evaluate
from aanet.errors import AanetError
from aanet.models.weights import files
from helpers import layouts

app = typer.Typer()
app.command()(evaluate)


@dataclass
class Result:
    disparity: np.ndarray
    confidence: np.ndarray | None


class Matcher:
    """Off by one pixel for a network, by four for SGBM."""

    built: list[tuple[str, int | None]]

    def __init__(self, model: str, *, engine: str | None, max_disparity: int | None) -> None:
        self.error = 4 if model == "sgbm" else 1
        self.spec = SimpleNamespace(name="stereonet_aa" if "small" in model else "aanet")
        self.built.append((model, max_disparity))

        if model == "sgbm":
            self.spec.name = "sgbm"
            assert engine is None

    def __call__(self, left: np.ndarray, right: np.ndarray, *, inspect: bool) -> Result:
        assert not inspect
        assert left.shape == right.shape
        disparity = np.nan_to_num(layouts.truth(), nan=9) + np.float32(self.error)
        return Result(disparity, None if self.error == 4 else np.ones_like(disparity))


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    Matcher.built = []
    monkeypatch.setattr("aanet.matcher.StereoMatcher", Matcher)


def rows_of(text: str) -> dict[str, str]:
    """The lines of the tables by the text before the first number or dash."""
    return {re.split(r"\s+(?=\d+\.\d|–)", line.strip())[0]: line for line in text.splitlines()}


@pytest.fixture
def kitti(tmp_path: Path) -> Path:
    return layouts.kitti2015(tmp_path / "kitti")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "80"})
    if isinstance(result.exception, AanetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_models_stand_side_by_side_with_the_papers_row_and_the_protocol(kitti: Path) -> None:
    text = run("kitti2015", kitti, "--model", "aanet", "--model", "sgbm")
    rows = rows_of(text)
    assert "1.00" in rows["aanet"]
    assert "2.29" in rows["paper, table 1"]
    assert "4.00" in rows["sgbm"]
    assert "split val: 2 pairs" in text
    for part in (
        "mask: ",
        "range: every known disparity",
        "crop: none",
        "average: over pixels",
        "paper: table 1",
    ):
        assert part in text


def test_files_have_short_names_in_eighty_columns(kitti: Path) -> None:
    files = ("runs/first-try-on-kitti/weights.safetensors", "runs/second-try/weights.safetensors")
    text = run("kitti2015", kitti, *(f"--model={file}" for file in files), "--model", "mine=runs/small.pth")
    rows = rows_of(text)
    names = {"first-try-on-kitti/weights", "second-try/weights", "mine", "paper, table 1"}
    assert names <= rows.keys()
    assert "…" not in text
    assert all(len(rows[name]) <= 80 for name in names)
    assert "mine: runs/small.pth (stereonet_aa)" in text


def test_the_papers_row_is_that_of_the_network_and_stands_once(kitti: Path) -> None:
    text = run("kitti2015", kitti, "--model", "a=aanet", "--model", "b=weights.safetensors")
    assert text.count("paper, table 1") == 1
    facts = json.loads(run("kitti2015", kitti, "--model", "b=weights.safetensors", "--json"))
    assert facts["results"][0]["source"] == "weights.safetensors"
    assert facts["paper"]["b"]["table"] == 1


def test_an_engine_applies_to_the_networks_beside_sgbm(kitti: Path) -> None:
    run("kitti2015", kitti, "--model", "aanet", "--model", "sgbm", "--engine", "torch")
    with pytest.raises(AssertionError):  # alone, sgbm gets the option, and the real matcher refuses it
        run("kitti2015", kitti, "--model", "sgbm", "--engine", "torch")


def test_the_default_model_is_used_and_the_range_reaches_it(kitti: Path) -> None:
    run("kitti2015", kitti)
    run("kitti2015", kitti, "--max-disparity", 96)
    assert Matcher.built == [(files.DEFAULT, None), (files.DEFAULT, 96)]


def test_sgbm_is_scored_for_real(kitti: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    facts = json.loads(run("kitti2015", kitti, "--json", "--model", "sgbm"))
    assert facts["results"][0]["metrics"]["epe"] > 0
    assert facts["results"][0]["ause"] is not None


def test_json_is_all_that_is_printed(kitti: Path) -> None:
    facts = json.loads(
        run("kitti2015", kitti, "--json", "--model", "aanet", "--model", "sgbm", "--split", "all")
    )
    first, second = facts["results"]
    assert (first["model"], first["metrics"]["epe"]) == ("aanet", pytest.approx(1))
    assert (second["model"], second["metrics"]["d1_all"]) == ("sgbm", 100)
    assert first["ause"] is not None
    assert second["ause"] is None
    assert facts["paper"] == {"aanet": {"table": 1, "metrics": {"epe": 0.68, "d1_all": 2.29}}, "sgbm": None}
    assert len(first["pairs"]) == 4


def test_limit_spreads_over_the_split(kitti: Path) -> None:
    facts = json.loads(run("kitti2015", kitti, "--json", "--split", "all", "--limit", 2))
    assert [pair["name"] for pair in facts["results"][0]["pairs"]] == ["kitti2015 000000", "kitti2015 000002"]


def test_report_has_the_pictures_that_were_asked_for(kitti: Path, tmp_path: Path) -> None:
    text = run("kitti2015", kitti, "--model", "aanet", "--output", tmp_path / "out", "--error-maps", 1)
    assert "report.md" in text
    report = (tmp_path / "out" / "report.md").read_text()
    assert report.count("![") == 1
    assert (tmp_path / "out" / "pictures" / "aanet-00000.png").is_file()


def test_submission_writes_the_zip_instead_of_scoring(kitti: Path, tmp_path: Path) -> None:
    text = run("kitti2015", kitti, "--submission", tmp_path / "out.zip")
    assert "2 disparity maps for the kitti2015 server" in text
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist() == ["disp_0/000000_10.png", "disp_0/000001_10.png"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--split", "test"), "has no ground truth; evaluate another one, or write --submission"),
        (("--model", "aanet", "--model", "sgbm", "--submission", "x.zip"), "one model; got aanet, sgbm"),
        (("--set", "resolution=H"), "no option 'resolution'"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], part: str, kitti: Path) -> None:
    with pytest.raises(AanetError, match=part):
        run("kitti2015", kitti, *arguments)


def test_a_bad_pair_is_named(kitti: Path) -> None:
    broken = kitti / "training" / "image_3" / "000005_10.png"
    broken.write_bytes(broken.read_bytes()[:-40])
    with pytest.raises(AanetError, match=r"000005_10\.png is damaged"):
        run("kitti2015", kitti)
