"""Maps of other programs: found by name, read in every format, and nothing left out in silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from aanet.data.datasets import StereoDataset, open_dataset
from aanet.errors import InputError, ReadError
from aanet.evaluation import Evaluation
from aanet.evaluation.map_files import find_maps
from aanet.evaluation.predictions import MapsOrigin, evaluate_predictions
from aanet.evaluation.report import conditions, result_rows
from helpers import layouts

DENSE = np.nan_to_num(layouts.truth(), nan=3.0) + np.float32(0.5)


def write(path: Path, disparity: np.ndarray = DENSE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, disparity)
    else:
        (layouts.write_pfm if path.suffix == ".pfm" else layouts.write_png16)(path, disparity)


@pytest.fixture
def kitti(tmp_path: Path) -> StereoDataset:
    return open_dataset("kitti2015", layouts.kitti2015(tmp_path / "data"), "all")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "maps"


def score(folder: Path, dataset: StereoDataset, strict: bool = False) -> Evaluation:
    return evaluate_predictions(find_maps(folder, dataset), dataset, model="other", strict=strict)


def origin_of(evaluation: Evaluation) -> MapsOrigin:
    assert isinstance(evaluation.origin, MapsOrigin)
    return evaluation.origin


@pytest.mark.parametrize(
    "name",
    [
        "{:06d}_10.png",
        "{:06d}.pfm",
        "disp_0/{:06d}_10.png",
        "deep/training/image_2/{:06d}_10.npy",
        "{:06d}_10_disparity.png",
        "{:06d}/pred.npy",
    ],
)
def test_kitti_frames_are_found_by_name_and_scored(name: str, kitti: StereoDataset, folder: Path) -> None:
    for frame in (0, 1, 2, 5):
        write(folder / name.format(frame))
    result = score(folder, kitti, strict=True)
    assert [pair.name for pair in result.pairs] == [f"kitti2015 {frame:06d}" for frame in (0, 1, 2, 5)]
    assert result.value("epe") == pytest.approx(0.5, abs=1e-3)
    assert result.seconds is None
    assert result_rows([result])[0][0] == "other"
    assert result_rows([result])[0][-1] == "–"


@pytest.mark.parametrize(
    "name", ["{}.npy", "{}/disp0METHOD.pfm", "trainingQ/{}/disp0.pfm", "{}_disp0.png", "{}/x.npy"]
)
def test_scenes_are_found_by_name_or_folder(name: str, folder: Path, tmp_path: Path) -> None:
    dataset = open_dataset("middlebury", layouts.middlebury(tmp_path / "data", "Q"), resolution="Q")
    for scene in ("Adirondack", "Jadeplant"):
        write(folder / name.format(scene))
    assert len(score(folder, dataset, strict=True).pairs) == 2


@pytest.mark.parametrize("name", ["B/0003/left/0006.pfm", "B_0003_0006.npy", "TEST/B/0003/left/0006.png"])
def test_frames_of_scene_flow_are_found_by_their_paths(name: str, folder: Path, tmp_path: Path) -> None:
    dataset = open_dataset("sceneflow", layouts.sceneflow(tmp_path / "data"), "test")
    write(folder / name)
    assert len(score(folder, dataset, strict=True).pairs) == 1


def test_maps_beside_the_images_are_told_from_the_ground_truth(tmp_path: Path) -> None:
    root = layouts.middlebury(tmp_path / "data", "Q")
    dataset = open_dataset("middlebury", root, resolution="Q")
    with pytest.raises(InputError, match=r"no disparity maps|None of the"):
        find_maps(root / "trainingQ", dataset)
    for scene in ("Adirondack", "Jadeplant"):
        write(root / "trainingQ" / scene / "disp0MINE.pfm")
    assert score(root / "trainingQ", dataset).value("epe") == pytest.approx(0.5)


def test_a_name_that_several_pairs_share_names_none(folder: Path, tmp_path: Path) -> None:
    dataset = open_dataset("sceneflow", layouts.sceneflow(tmp_path / "data"), "train")
    write(folder / "0006.pfm")
    with pytest.raises(InputError, match=r"None of the 1 files .* such as 0006.pfm, is named after a pair"):
        find_maps(folder, dataset)


def test_an_appendix_is_not_taken_for_another_pair(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "a_left"):
        layouts.write_pair(tmp_path / f"data/left/{name}.png", tmp_path / f"data/right/{name}.png")
        layouts.write_pfm(tmp_path / f"data/disparity/{name}.pfm", layouts.truth())
    dataset = open_dataset("folder", tmp_path / "data")
    write(folder / "a_left.pfm")
    found = find_maps(folder, dataset)
    assert {dataset.pairs[index].key for index in found.of_pairs} == {"a_left"}


def test_two_maps_of_one_pair_are_refused(kitti: StereoDataset, folder: Path) -> None:
    write(folder / "disp_0/000000_10.png")
    write(folder / "disp_1/000000_10.png")
    with pytest.raises(InputError, match=r"has 2 maps for kitti2015 000000: disp_0/000000_10.png and disp_1"):
        find_maps(folder, kitti)


def test_what_is_missing_or_superfluous_is_said(kitti: StereoDataset, folder: Path) -> None:
    write(folder / "000000_10.png")
    write(folder / "000005_10.png")
    write(folder / "000007_10.png")
    result = score(folder, kitti)
    assert (len(result.pairs), result.total) == (2, 4)
    assert result_rows([result])[0][0] == "other (2 of 4 pairs)"
    lines = [words for _, words in conditions([result])]
    assert f"maps in {folder}, computed elsewhere; scored 2 of 4 pairs" in lines
    assert "without a map, and not in the averages: 000001, 000002" in lines
    assert "files that belong to no pair of this split: 000007_10.png" in lines
    facts = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert (facts["scored_pairs"], facts["total_pairs"]) == (2, 4)
    assert facts["origin"]["missing"] == ["000001", "000002"]
    assert facts["origin"]["unused_files"] == ["000007_10.png"]
    with pytest.raises(InputError, match=r"2 of 4 maps in .* cannot be scored \(no map of 000001, 000002\)"):
        score(folder, kitti, strict=True)


def test_only_the_chosen_pairs_must_have_maps(kitti: StereoDataset, folder: Path) -> None:
    write(folder / "000000_10.png")
    write(folder / "000001_10.png")
    result = evaluate_predictions(find_maps(folder, kitti), kitti, model="other", indices=[0], strict=True)
    assert (len(result.pairs), result.total) == (1, 1)
    assert origin_of(result).unused == []


def test_a_wrong_size_a_damaged_file_and_an_8_bit_map_are_named(kitti: StereoDataset, folder: Path) -> None:
    write(folder / "000000_10.npy")
    write(folder / "000001_10.npy", DENSE[:12])
    (folder / "000002_10.npy").write_bytes(b"damaged")
    layouts.write_png8(folder / "000005_10.png", DENSE)
    result = score(folder, kitti)
    reasons = dict(origin_of(result).unusable)
    assert list(reasons) == ["000001", "000002", "000005"]
    assert "is 12×40, and the images are 24×40; maps are not resized" in reasons["000001"]
    assert "damaged" in reasons["000002"]
    assert "8-bit" in reasons["000005"]
    assert any(what == "other, not scored" and "12×40" in words for what, words in conditions([result]))
    with pytest.raises(InputError, match="12×40"):
        score(folder, kitti, strict=True)


@pytest.mark.parametrize("suffix", [".pfm", ".npy"])
def test_the_other_sign_is_noticed_and_said(suffix: str, kitti: StereoDataset, folder: Path) -> None:
    for frame in (0, 1, 2, 5):
        write(folder / f"{frame:06d}{suffix}", -DENSE if frame else DENSE)
    result = score(folder, kitti)
    assert result.value("epe") == pytest.approx(0.5, abs=1e-3)
    assert ("other, maps", "negative disparities in 3 maps, which were negated") in conditions([result])


def test_infinities_and_single_negative_values_are_holes(kitti: StereoDataset, folder: Path) -> None:
    holes = DENSE.copy()
    holes[20, :10] = np.inf
    holes[21, :10] = -1
    for frame in (0, 1, 2, 5):
        write(folder / f"{frame:06d}.npy", holes)
    result = score(folder, kitti)
    assert result.value("density") == pytest.approx(100 * (1 - 20 / (24 * 40 - 24)), abs=0.01)
    origin = origin_of(result)
    assert (origin.with_holes, origin.with_negative, origin.negated) == (4, 4, 0)


def test_a_folder_without_any_usable_map_is_one_sentence(kitti: StereoDataset, folder: Path) -> None:
    with pytest.raises(ReadError, match="There is no folder"):
        find_maps(folder, kitti)
    folder.mkdir()
    with pytest.raises(InputError, match="has no disparity maps"):
        find_maps(folder, kitti)
    write(folder / "000000.npy", np.full((24, 40), np.nan, np.float32))
    with pytest.raises(InputError, match=r"4 of 4 maps .* 000000: .* has no known disparity"):
        score(folder, kitti)
