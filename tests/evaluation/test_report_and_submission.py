"""Reports show what was measured; submissions have the servers' names and formats."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.data.datasets import open_dataset
from aanet.errors import AanetError
from aanet.evaluation import evaluate
from aanet.evaluation.report import ErrorMaps, result_rows, spread, write_report
from aanet.evaluation.submission import submission_format, write_submission
from aanet.io.disparity import decode_pfm
from helpers import layouts

DISPARITY = np.round(np.linspace(1, 9, 24 * 40).reshape(24, 40) * 256).astype(np.float32) / 256


@dataclass
class Result:
    disparity: np.ndarray
    confidence: np.ndarray | None = None


def match(*_: np.ndarray) -> Result:
    disparity = DISPARITY.copy()
    disparity[3, 5] = np.nan
    return Result(disparity)


def submit(name: str, root: Path, path: Path, **options: str) -> dict[str, bytes]:
    datasets = [open_dataset(name, root, split, **options) for split in submission_format(name).splits]
    write_submission(match, datasets, path, "AANet")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {file: archive.read(file) for file in archive.namelist()}


@pytest.mark.parametrize(("name", "folder"), [("kitti2012", ""), ("kitti2015", "disp_0/")])
def test_kitti_takes_16_bit_png_of_the_test_frames(name: str, folder: str, tmp_path: Path) -> None:
    files = submit(name, getattr(layouts, name)(tmp_path / "data"), tmp_path / "out.zip")
    assert f"{folder}000000_10.png" in files
    assert len(files) == (2 if name == "kitti2015" else 1)
    stored = cv2.imdecode(np.frombuffer(files[f"{folder}000000_10.png"], np.uint8), cv2.IMREAD_UNCHANGED)
    assert stored.dtype == np.uint16
    assert stored[3, 5] == 0  # the server fills holes itself
    stored[3, 5] = DISPARITY[3, 5] * 256
    np.testing.assert_array_equal(stored, DISPARITY * 256)


def test_middlebury_takes_pfm_and_time_of_both_sets(tmp_path: Path) -> None:
    layouts.middlebury(tmp_path / "data", "Q")
    files = submit("middlebury", tmp_path / "data", tmp_path / "out.zip", resolution="Q")
    scenes = ("trainingQ/Adirondack", "trainingQ/Jadeplant", "testQ/Australia")
    assert set(files) == {f"{s}/{file}" for s in scenes for file in ("disp0AANet.pfm", "timeAANet.txt")}
    assert float(files["testQ/Australia/timeAANet.txt"]) >= 0
    assert np.isfinite(decode_pfm(files["testQ/Australia/disp0AANet.pfm"], "map")).all()


def test_eth3d_takes_pfm_and_a_runtime_line(tmp_path: Path) -> None:
    files = submit("eth3d", layouts.eth3d(tmp_path / "data"), tmp_path / "out.zip")
    scenes = ("delivery_area_1l", "forest_1s", "lakeside_1l")
    assert set(files) == {f"low_res_two_view/{s}.{end}" for s in scenes for end in ("pfm", "txt")}
    assert re.fullmatch(r"runtime \d+\.\d+\n", files["low_res_two_view/forest_1s.txt"].decode())
    disparity = decode_pfm(files["low_res_two_view/forest_1s.pfm"], "map")
    known = np.ones_like(disparity, bool)
    known[3, 5] = False
    np.testing.assert_array_equal(disparity[known], DISPARITY[known])


def test_a_failing_pair_leaves_no_zip(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path / "data")
    (tmp_path / "data/testing/image_3/000001_10.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    with pytest.raises(AanetError, match=r"000001_10\.png is damaged"):
        submit("kitti2015", tmp_path / "data", tmp_path / "out.zip")
    assert not list(tmp_path.glob("*.zip"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_who_takes_no_submission_says_so(tmp_path: Path) -> None:
    with pytest.raises(AanetError, match="sceneflow accepts no submissions; these do: kitti2012"):
        submission_format("sceneflow")
    test = open_dataset("kitti2015", layouts.kitti2015(tmp_path), "test")
    with pytest.raises(AanetError, match="may have letters and digits only"):
        write_submission(match, [test], tmp_path / "x.zip", "my/method")


def test_report_holds_table_protocol_regions_and_pictures(tmp_path: Path) -> None:
    dataset = open_dataset("kitti2015", layouts.kitti2015(tmp_path / "data"), "val")
    maps = ErrorMaps(tmp_path / "out", "aanet", [1])
    evaluation = evaluate(match, dataset, model="aanet", observe=maps)
    path = write_report(tmp_path / "out", [evaluation], [maps], "val")
    text = path.read_text()
    assert f"| aanet | {evaluation.value('d1_bg'):.2f} |" in text
    assert "| paper, table 1 | – | – | 2.29 | – | 0.68 |" in text
    assert "- paper: table 1: KITTI 2015, 40 validation pairs" in text
    assert "- range: every known disparity" in text
    assert "| occluded |" in text
    pictures = re.findall(r"!\[.*\]\((.*)\)", text)
    assert pictures == ["pictures/aanet-00001.png"]
    picture = cv2.imread(str(path.parent / pictures[0]))
    assert picture.shape[0] > 2 * 24
    columns = {line.count("|") for line in text.split("##")[0].splitlines() if line.startswith("|")}
    assert len(columns) == 1


def test_models_without_a_published_row_stand_alone(tmp_path: Path) -> None:
    dataset = open_dataset("eth3d", layouts.eth3d(tmp_path))
    assert [row[0] for row in result_rows([evaluate(match, dataset, model="aanet")])] == ["aanet"]


@pytest.mark.parametrize(("total", "count"), [(10, 3), (3, 3), (2, 5), (7, 0), (4370, 4)])
def test_spread_indices_are_distinct_and_inside(total: int, count: int) -> None:
    indices = spread(total, count)
    assert len(indices) == min(total, count)
    assert all(0 <= index < total for index in indices)
