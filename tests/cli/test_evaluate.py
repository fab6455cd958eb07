"""`aanet evaluate` as a user sees it, with stand-ins for the matchers."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aanet.cli.evaluate import evaluate
from aanet.cli.main import main
from aanet.errors import AanetError
from aanet.inference.hints import InferenceHints
from aanet.inference.size_rule import SizeRule
from aanet.models.weights import files
from aanet.version import __version__
from helpers import layouts
from helpers.fake_engine import FakeEngine

app = typer.Typer()
app.command()(evaluate)


class Opened(NamedTuple):
    """A model that was opened, with the options that reached it."""

    model: str
    options: dict[str, object]
    engine: FakeEngine


HINTS = InferenceHints(upscale_to=60, sharpen_edges=True, fill_border=True)


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    """Engines that are off by one pixel, or by four for SGBM, instead of the real ones."""
    found: list[Opened] = []

    def open_engine(model: str, **options: object) -> FakeEngine:
        wrong = np.float32(4 if model == "sgbm" else 1)
        name = "sgbm" if model == "sgbm" else "stereonet_aa" if "small" in model else "aanet"
        engine = FakeEngine(lambda left: predict(left, wrong), name=name)
        if model == "hinted.pth":
            engine = FakeEngine(lambda left: predict(left, wrong), hints=HINTS, sizes=SizeRule(8))
        found.append(Opened(model, options, engine))
        return engine

    monkeypatch.setattr("aanet.matcher.open_engine", open_engine)
    return found


def predict(left: np.ndarray, wrong: np.float32) -> np.ndarray:
    same_size = left.shape[2:] == layouts.truth().shape
    return np.nan_to_num(layouts.truth(), nan=9) + wrong if same_size else np.float32(5)


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Make a file of the current folder, which is temporary."""
    monkeypatch.chdir(tmp_path)

    def make(name: str) -> str:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"weights")
        return name

    return make


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


def test_files_have_short_names_in_eighty_columns(kitti: Path, weights: Callable[[str], str]) -> None:
    names = ("runs/first-try-on-kitti/weights.safetensors", "runs/second-try/weights.safetensors")
    models = [weights(name) for name in names] + [f"mine={weights('runs/small.pth')}"]
    text = run("kitti2015", kitti, *(f"--model={model}" for model in models))
    rows = rows_of(text)
    shown = {"first-try-on-kitti/weights", "second-try/weights", "mine", "paper, table 1"}
    assert shown <= rows.keys()
    assert "…" not in text
    assert all(len(rows[name]) <= 80 for name in shown)
    assert f"mine: runs/small.pth, stereonet_aa, sha256:{sha256(b'weights').hexdigest()}" in text


def test_the_papers_row_is_that_of_the_network_and_stands_once(
    kitti: Path, weights: Callable[[str], str]
) -> None:
    mine = f"b={weights('mine.safetensors')}"
    text = run("kitti2015", kitti, "--model", "a=aanet", "--model", mine)
    assert text.count("paper, table 1") == 1
    facts = json.loads(run("kitti2015", kitti, "--model", mine, "--json"))
    assert facts["results"][0]["source"] == "mine.safetensors"
    assert facts["paper"]["b"]["table"] == 1


def test_options_reach_every_model_that_has_them(
    kitti: Path, opened: list[Opened], weights: Callable[[str], str]
) -> None:
    models = ("aanet", "sgbm", weights("net.onnx"))
    options = "--engine torch --precision bf16 --device cpu --threads 2 --max-disparity 96"
    run("kitti2015", kitti, *(f"--model={model}" for model in models), *options.split())
    given = {each.model: each.options for each in opened}
    assert given["aanet"] == {
        "weights": None,
        "engine": "torch",
        "precision": "bf16",
        "max_disparity": 96,
        "device": "cpu",
        "threads": 2,
        "network_spec": None,
    }
    # These have no choice of engine beside networks; reports say what was used.
    assert [given["sgbm"][name] for name in ("engine", "precision", "device")] == [None, "auto", None]
    assert given["sgbm"]["max_disparity"] == 96
    assert [given["net.onnx"][name] for name in ("engine", "max_disparity", "threads")] == [None, None, 2]


def test_alone_a_model_gets_all_options_and_may_refuse_them(kitti: Path, opened: list[Opened]) -> None:
    run("kitti2015", kitti, "--model", "sgbm", "--engine", "torch")
    assert opened[0].options["engine"] == "torch"


def test_the_default_model_is_used_and_the_range_reaches_it(kitti: Path, opened: list[Opened]) -> None:
    run("kitti2015", kitti)
    run("kitti2015", kitti, "--max-disparity", 96)
    assert [(each.model, each.options["max_disparity"]) for each in opened] == [
        (files.DEFAULT, None),
        (files.DEFAULT, 96),
    ]


def test_what_was_done_to_the_images_stands_in_every_report(
    kitti: Path, tmp_path: Path, opened: list[Opened], weights: Callable[[str], str]
) -> None:
    text = run("kitti2015", kitti, "--model", weights("hinted.pth"), "-o", tmp_path / "out")
    assert opened[0].engine.shapes == [(1, 3, 40, 64)] * 2
    report = (tmp_path / "out/report.md").read_text()
    for words in (
        "--scale auto: images narrower than 60 px are enlarged to it, at most 1.5 times (resized by 1.5)",
        "padded to multiples of 8 px; --tile auto: the whole image at once",
        "--postprocess auto: edges sharpened, left border filled",
        f"aanet {__version__}, opencv ",
        "hinted, computed by: fake; ",
        f"sha256:{sha256(b'weights').hexdigest()}",
    ):
        assert words in text
        assert words in report
    origin = json.loads((tmp_path / "out/report.json").read_text())["results"][0]["origin"]
    assert origin["upscale_to"] == 60
    assert (origin["scale"], origin["tile"], origin["postprocess"]) == ("auto", "auto", "auto")


def test_the_network_alone_is_evaluated_by_the_command(
    kitti: Path, opened: list[Opened], weights: Callable[[str], str]
) -> None:
    alone = ("--model", weights("hinted.pth"), "--scale", 1, "--postprocess", "none", "--tile", "24x40")
    text = run("kitti2015", kitti, *alone)
    assert "--scale 1 (not resized); padded to multiples of 8 px; --tile 24×40: 24×40 tiles" in text
    assert "--postprocess none: the raw prediction" in text
    facts = json.loads(run("kitti2015", kitti, *alone, "--json"))["results"][0]
    assert opened[0].engine.shapes == opened[1].engine.shapes == [(1, 3, 24, 40)] * 2
    assert facts["metrics"]["epe"] == pytest.approx(1)
    assert facts["pairs"][0]["processing"] == {
        "scale": 1.0,
        "size": [24, 40],
        "padded": [24, 40],
        "tile": [24, 40],
        "sharpen_edges": False,
        "fill_border": False,
    }
    origin = facts["origin"]
    assert origin["weights"] == f"sha256:{sha256(b'weights').hexdigest()}"
    assert origin["versions"].keys() == {"aanet", "opencv"}
    assert (origin["scale"], origin["tile"], origin["postprocess"]) == (1.0, "24x40", "none")
    assert (origin["engine"], origin["max_disparity"], origin["size_multiple"]) == ("fake", 48, 8)


def test_maps_of_other_programs_stand_beside_models(kitti: Path, tmp_path: Path) -> None:
    for frame in (0, 5):
        layouts.write_png16(tmp_path / f"maps/{frame:06d}_10.png", layouts.truth() + 2)
    other = ("--predictions", f"other={tmp_path / 'maps'}")
    text = run("kitti2015", kitti, *other, "--model", "aanet", "-o", tmp_path / "out")
    rows = rows_of(text)
    assert "2.00" in rows["other"]
    assert "1.00" in rows["aanet"]
    assert "scored 2 of 2 pairs" in text
    assert (tmp_path / "out/pictures/other-00001.png").is_file()
    facts = json.loads(run("kitti2015", kitti, *other, "--json"))
    assert [row["model"] for row in facts["results"]] == ["other"]
    assert facts["results"][0]["seconds_per_pair"] is None


def test_a_missing_map_is_counted_in_the_table(kitti: Path, tmp_path: Path) -> None:
    layouts.write_png16(tmp_path / "maps/000000_10.png", layouts.truth() + 2)
    other = ("--predictions", f"other={tmp_path / 'maps'}")
    text = run("kitti2015", kitti, *other)
    assert "other (1 of 2 pairs)" in " ".join(text.split())
    assert "without a map, and not in the averages: 000005" in text
    with pytest.raises(AanetError, match="no map of 000005"):
        run("kitti2015", kitti, *other, "--strict")


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
        (("--scale", "90"), "The scale must be from 0.05 to 8"),
        (("--tile", "wide"), "The tile must be auto, none, or HEIGHTxWIDTH"),
        (("--postprocess", "some"), "postprocess must be one of"),
        (("--predictions", "maps"), "are given as NAME=FOLDER; got 'maps'"),
        (("--predictions", "a=nowhere"), "There is no folder nowhere"),
        (("--predictions", "a=x", "--model", "a=sgbm"), "Two rows would be called 'a'"),
        (("--predictions", "a=x", "--submission", "x.zip"), "one model; got a"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], part: str, kitti: Path) -> None:
    with pytest.raises(AanetError, match=part):
        run("kitti2015", kitti, *arguments)


def test_an_error_is_one_line_and_exit_code_2(
    kitti: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "maps").mkdir()
    words = ["evaluate", "kitti2015", str(kitti), "--predictions", f"other={tmp_path / 'maps'}"]
    monkeypatch.setattr(sys, "argv", ["aanet", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "has no disparity maps (.png, .pfm, .npy, .npz)." in printed.err


def test_a_bad_pair_is_named(kitti: Path) -> None:
    broken = kitti / "training" / "image_3" / "000005_10.png"
    broken.write_bytes(broken.read_bytes()[:-40])
    with pytest.raises(AanetError, match=r"000005_10\.png is damaged"):
        run("kitti2015", kitti)
