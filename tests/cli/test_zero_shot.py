"""`aanet evaluate zero-shot` on datasets in each benchmark's own layout, against naive computations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from aanet.cli.main import app, main
from aanet.errors import AanetError
from aanet.evaluation.zero_shot.benchmarks import BENCHMARKS
from helpers import layouts
from helpers.fake_engine import FakeEngine

ALL = [each.name for each in BENCHMARKS]


def predicted(shift: float = 0) -> np.ndarray:
    """Errors from -6 to 6 px that differ between rows, so that every threshold divides the pixels."""
    rows = np.linspace(-6, 6, layouts.HEIGHT, dtype=np.float32)[:, None]
    return np.maximum(np.nan_to_num(layouts.truth(), nan=9) + rows + np.float32(shift), 0)


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_engine(model: str, **_: object) -> FakeEngine:
        return FakeEngine(predicted(1 if model == "sgbm" else 0), name=model)

    monkeypatch.setattr("aanet.matcher.open_engine", open_engine)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """All benchmarks but KITTI 2012 and Middlebury at F; two frames of KITTI have one kind of truth only."""
    kitti = layouts.kitti2015(tmp_path / "data/kitti2015")
    (kitti / "training/disp_occ_0/000001_10.png").unlink()
    (kitti / "training/disp_noc_0/000002_10.png").unlink()
    for size in "QH":
        layouts.middlebury(tmp_path / "data/middlebury", size)
    layouts.eth3d(tmp_path / "data/eth3d")
    # A scene of a different weight in pixels: averages over scenes and over pixels differ then.
    small = np.where(np.arange(layouts.WIDTH) < 30, np.nan, layouts.truth())
    layouts.write_pfm(tmp_path / "data/middlebury/trainingQ/Jadeplant/disp0GT.pfm", small[::-1])
    layouts.write_pfm(tmp_path / "data/eth3d/two_view_training/forest_1s/disp0GT.pfm", small)
    return tmp_path / "data"


def invoke(*arguments: object) -> str:
    words = ["evaluate", "zero-shot", *map(str, arguments)]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "80"})
    if isinstance(result.exception, AanetError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def facts(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke(*arguments, "--json"))
    return found


def read_pfm(path: Path) -> np.ndarray:
    values = np.frombuffer(path.read_bytes()[-4 * layouts.HEIGHT * layouts.WIDTH :], "<f4")
    return values.reshape(layouts.HEIGHT, layouts.WIDTH)[::-1]


def naive_scenes(folder: Path, threshold: float, visible: bool) -> float:
    """Mean over scenes of the percentage of wrong pixels."""
    scores, disparity = [], predicted().astype(float)
    for scene in sorted(folder.iterdir()):
        truth, wrong, counted = read_pfm(scene / "disp0GT.pfm"), 0, 0
        mask = cv2.imread(str(scene / "mask0nocc.png"), cv2.IMREAD_GRAYSCALE)
        for y, x in np.ndindex(truth.shape):
            if np.isfinite(truth[y, x]) and (mask[y, x] == 255 or not visible):
                counted += 1
                wrong += abs(disparity[y, x] - float(truth[y, x])) > threshold
        scores.append(100 * wrong / counted)
    return sum(scores) / len(scores)


def naive_d1(folder: Path) -> float:
    """Percentage over the pixels of all images; the truth without occluded pixels where there is no other."""
    wrong, counted, disparity = 0, 0, predicted().astype(float)
    for left in sorted((folder / "image_2").iterdir()):
        path = folder / "disp_occ_0" / left.name
        stored = cv2.imread(
            str(path if path.exists() else folder / "disp_noc_0" / left.name), cv2.IMREAD_UNCHANGED
        )
        for y, x in np.ndindex(stored.shape):
            if stored[y, x]:
                truth = stored[y, x] / 256
                error = abs(disparity[y, x] - truth)
                counted += 1
                wrong += error > 3 and error > 0.05 * truth
    return 100 * wrong / counted


def test_the_numbers_are_those_of_a_naive_computation(data: Path) -> None:
    scores = facts(data, "--model", "aanet")["scores"]["aanet"]
    assert list(scores) == ["kitti2015", "middlebury-Q", "middlebury-H", "eth3d"]
    assert scores["kitti2015"] == {"d1_all": pytest.approx(naive_d1(data / "kitti2015/training"))}
    for size in "QH":
        for metric, visible in (("bad2_noc", True), ("bad2", False)):
            naive = naive_scenes(data / f"middlebury/training{size}", 2, visible)
            assert scores[f"middlebury-{size}"][metric] == pytest.approx(naive), (size, metric)
    for metric, visible in (("bad1_noc", True), ("bad1", False)):
        naive = naive_scenes(data / "eth3d/two_view_training", 1, visible)
        assert scores["eth3d"][metric] == pytest.approx(naive), metric
    assert len({value for values in scores.values() for value in values.values()}) > 5


def test_kitti_2012_is_scored_by_d1_over_pixels_too(tmp_path: Path) -> None:
    layouts.kitti2012(tmp_path / "kitti2012", gray=True)
    result = facts(tmp_path, "--model", "aanet", "--max-disparity", 48)
    stored, error = layouts.truth(), np.abs(predicted() - layouts.truth())
    known = np.isfinite(stored)
    naive = 100 * np.mean((error > 3)[known] & (error > 0.05 * stored)[known])
    assert result["scores"]["aanet"] == {"kitti2012": {"d1_all": pytest.approx(naive)}}


def test_absent_benchmarks_and_subsets_are_named(data: Path) -> None:
    text = invoke(data, "--model", "aanet", "--model", "sgbm")
    for words in (
        f"KITTI 2012: absent, no folder {data}/kitti2012/training",
        f"Middlebury F: absent, no folder {data}/middlebury/trainingF",
        "KITTI 2015: a subset, 4 of 200 training pairs; D1: an error of > 3 px and > 5 %",
        "1 of 4 pairs have no ground truth on occluded pixels",
        "Middlebury Q: a subset, 2 of 15 training pairs; bad-2",
        "ETH3D: a subset, 2 of 27 training pairs; bad-1",
        "mask: pixels with ground truth, including occluded ones; noc: visible in both views",
        "[1]: Lipson et al., RAFT-Stereo, 3DV 2021, table 1",
    ):
        assert words in text, words
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    # KITTI 2012, KITTI 2015, then noc and all of Q and of H, noc of F, noc and all of ETH3D
    assert rows["pairs"][1:] == ["–", "4/200", *["2/15"] * 4, "–", "2/27", "2/27"]
    assert len(rows["aanet"]) == len(rows["sgbm"]) == 10
    assert rows["PSMNet"][-9:] == ["15.1", "16.3", "14.2", "–", "25.1", "–", "39.5", "–", "23.8"]
    assert rows["HITNet"][-9:] == ["–", "6.5", *"–" * 7]
    table = text[: text.index("KITTI 2015:")]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table


def test_json_says_which_pairs_and_pixels_count(data: Path) -> None:
    result = facts(data, "--limit", 1)
    found = {each["name"]: each for each in result["benchmarks"]}
    assert list(found) == ALL
    assert [each["complete"] for each in found.values()] == [194, 200, 15, 15, 15, 27]
    status = {name: (each["status"], each["pairs"]) for name, each in found.items()}
    assert status["kitti2015"] == ("subset", 1)
    assert status["middlebury-F"] == ("absent", 0)
    assert found["kitti2015"]["average"] == "pixels"
    methods = {row["method"]: row for row in result["published"]}
    assert methods["DSMNet"]["scores"]["middlebury-H"] == {"bad2_noc": 13.8}
    assert all(row["sources"] and row["trained_on"] == "Scene Flow" for row in methods.values())
    (kitti,) = result["results"]["kitti2015"]
    assert kitti["metrics"] == result["scores"][kitti["model"]]["kitti2015"]
    assert kitti["pairs"][0]["largest_true_disparity"] == pytest.approx(6)


def test_a_complete_benchmark_is_no_subset(tmp_path: Path) -> None:
    names = tuple(f"scene{number}" for number in range(15))
    layouts.scenes(tmp_path / "middlebury/trainingQ", names, with_truth=True)
    for name in names[:5]:
        (tmp_path / "middlebury/trainingQ" / name / "mask0nocc.png").unlink()
    text = invoke(tmp_path)
    assert "Middlebury Q: all 15 training pairs" in text
    assert "5 of 15 pairs have no occlusion mask and are not in the noc metrics" in text
    (counts,) = (line.split() for line in text.splitlines() if line.strip().startswith("pairs "))
    assert counts[3:5] == ["10/15", "15/15"]


def test_benchmarks_can_be_chosen(data: Path) -> None:
    result = facts(data, "--set", "sets=eth3d,middlebury-Q")
    assert list(result["results"]) == ["middlebury-Q", "eth3d"]
    assert [each["name"] for each in result["benchmarks"]] == ["middlebury-Q", "eth3d"]


def test_options_of_predict_reach_the_models_and_stand_in_the_protocol(data: Path) -> None:
    text = invoke(data, "--model", "aanet", "--scale", "1", "--postprocess", "none", "--set", "sets=eth3d")
    assert "aanet, images: --scale 1 (not resized); not padded" in text
    assert "--postprocess none: the raw prediction" in text


def test_disparities_out_of_range_are_noted(data: Path) -> None:
    far = np.where(np.isnan(layouts.truth()), np.nan, layouts.truth() + 60)
    layouts.write_pfm(data / "eth3d/two_view_training/forest_1s/disp0GT.pfm", far)
    text = invoke(data, "--model", "aanet")
    assert "true disparities up to 66 px" in text
    assert "1 of 2 pairs of ETH3D have disparities beyond the range of aanet (below 48 px" in text
    assert "of KITTI 2015 have disparities beyond" not in text


def test_the_report_has_the_table_and_pictures_of_each_benchmark(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = invoke(data, "--model", "aanet", "-o", out, "--error-maps", 1)
    assert f"Wrote {out}/report.md and report.json." in text
    report = (out / "report.md").read_text()
    assert "| PSMNet [1, 2] | 15.1 | 16.3 | 14.2 | – | 25.1 | – | 39.5 | – | 23.8 |" in report
    assert "- KITTI 2012: absent" in report
    assert "## aanet on Middlebury H by region" in report
    pictures = [line.partition("(")[2].rstrip(")") for line in report.splitlines() if line.startswith("![")]
    assert len(pictures) == 4
    assert all((out / picture).is_file() for picture in pictures)
    assert json.loads((out / "report.json").read_text())["scores"].keys() == {"aanet"}
    with pytest.raises(AanetError, match=r"report\.md already exists"):
        invoke(data, "-o", out)


def write_maps(folder: Path) -> Path:
    for frame in (0, 1, 2):
        layouts.write_png16(folder / f"kitti2015/{frame:06d}_10.png", layouts.truth() + 4)
    for size in "QH":
        for scene in ("Adirondack", "Jadeplant"):
            layouts.write_pfm(folder / f"middlebury/training{size}/{scene}/disp0RAFT.pfm", predicted())
    return folder


def test_maps_of_other_programs_are_found_in_folders_of_the_same_names(data: Path, tmp_path: Path) -> None:
    maps = f"raft={write_maps(tmp_path / 'maps')}"
    result = facts(data, "--predictions", maps, "--model", "aanet")
    raft, ours = result["scores"]["raft"], result["scores"]["aanet"]
    assert raft["kitti2015"]["d1_all"] == 100
    assert raft["middlebury-Q"] == pytest.approx(ours["middlebury-Q"])
    assert "eth3d" not in raft
    alone = invoke(data, "--predictions", maps)
    assert "ETH3D: absent, no maps" in alone
    assert "100.0*" in alone
    assert "without a map, and not in the averages: 000005" in alone
    with pytest.raises(AanetError, match="raft has no folder eth3d with maps"):
        invoke(data, "--predictions", maps, "--strict")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--split", "val"), "--split cannot be combined with zero-shot; name one benchmark"),
        (("--submission", "x.zip"), "--submission cannot be combined with zero-shot"),
        (("--set", "resolution=Q"), "zero-shot has no option 'resolution'; expected sets"),
        (("--set", "sets=kitti2016"), r"no benchmark 'kitti2016' in zero-shot \(did you mean"),
        (("--predictions", "raft=nowhere"), "nowhere of raft has no folder kitti2015, middlebury/trainingQ"),
        (("--scale", "90"), "The scale must be from"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], part: str, data: Path) -> None:
    with pytest.raises(AanetError, match=part):
        invoke(data, *arguments)


def test_missing_truth_or_images_are_named_before_anything_is_matched(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aanet.matcher.open_engine", lambda *_, **__: pytest.fail("a model was opened"))
    (data / "eth3d/two_view_training/forest_1s/im1.png").unlink()
    with pytest.raises(AanetError, match=r"ETH3D: forest_1s has no right image, .*im1\.png does not exist"):
        invoke(data)
    (data / "kitti2015/training/disp_noc_0/000001_10.png").unlink()
    with pytest.raises(
        AanetError, match=r"KITTI 2015: 000001 has no ground truth, .*disp_occ_0/000001_10\.png"
    ):
        invoke(data)


def test_a_folder_without_benchmarks_says_what_is_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = "kitti2012/training, kitti2015/training, middlebury/trainingQ, middlebury/trainingH"
    for folder, problem in ((tmp_path, "has no benchmark"), (tmp_path / "no", "does not exist")):
        monkeypatch.setattr(sys, "argv", ["aanet", "evaluate", "zero-shot", str(folder)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        assert problem in printed.err
        assert expected in printed.err
    (tmp_path / "eth3d/two_view_training").mkdir(parents=True)
    with pytest.raises(AanetError, match=r"The split 'train' of eth3d .* is empty"):
        invoke(tmp_path)
