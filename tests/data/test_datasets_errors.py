"""What can be wrong with a dataset is said in one sentence that names the file or the tree."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from aanet.data.datasets import DATASETS, open_dataset
from aanet.errors import AanetError, InputError, ReadError, UnsupportedError
from helpers import layouts


def message(error: pytest.ExceptionInfo[AanetError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", list(DATASETS))
def test_missing_root_names_the_expected_tree(name: str, tmp_path: Path) -> None:
    with pytest.raises(AanetError) as error:
        open_dataset(name, tmp_path / "nowhere")
    assert "nowhere does not exist" in message(error)
    source = DATASETS[name].CARD.source
    reference = name if name == "folder" else f"{name} ({source})"
    assert f"{reference} is expected there as" in message(error)
    assert name == "folder" or source.startswith("https://")
    assert DATASETS[name].CARD.groups[0].left in message(error)


@pytest.mark.parametrize("name", list(DATASETS))
def test_empty_split_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(AanetError, match=f"of {name}.* is empty: no files in .* match"):
        len(open_dataset(name, tmp_path))


def test_corrupt_image_is_named(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    broken = tmp_path / "training" / "image_3" / "000002_10.png"
    broken.write_bytes(broken.read_bytes()[:200])
    dataset = open_dataset("kitti2015", tmp_path)
    assert dataset[0].name == "kitti2015 000001"
    with pytest.raises(AanetError, match=re.escape(str(broken))):
        dataset[1]


@pytest.mark.parametrize("part", ["image_3", "disp_occ_0"])
def test_missing_file_of_a_pair_is_named(part: str, tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    lost = [tmp_path / "training" / part / "000001_10.png"]
    if part == "disp_occ_0":
        lost.append(tmp_path / "training" / "disp_noc_0" / "000001_10.png")
    for path in lost:
        path.unlink()
    with pytest.raises(ReadError, match=re.escape(f"{lost[0]} does not exist")):
        open_dataset("kitti2015", tmp_path)[0]


def test_ground_truth_of_another_size_is_an_error(tmp_path: Path) -> None:
    layouts.eth3d(tmp_path)
    layouts.write_pfm(tmp_path / "two_view_training/delivery_area_1l/disp0GT.pfm", np.ones((5, 7)))
    with pytest.raises(InputError, match=r"delivery_area_1l: the disparity map is 5×7, but .* are 24×40"):
        open_dataset("eth3d", tmp_path)[0]


def test_missing_pseudo_label_says_how_to_make_it(tmp_path: Path) -> None:
    dataset = open_dataset("kitti2015", layouts.kitti2015(tmp_path), pseudo_labels=True)
    with pytest.raises(ReadError, match="aanet pseudo-label"):
        dataset[0]


def test_a_subset_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    layouts.sceneflow(tmp_path)
    with pytest.raises(ReadError, match="Monkaa train cleanpass was requested"):
        open_dataset("sceneflow", tmp_path, render="cleanpass", subsets=["Monkaa"])
    with pytest.raises(UnsupportedError, match="FlyingThings3D, which `subsets`"):
        open_dataset("sceneflow", tmp_path, split="test", subsets=["Monkaa"])


def test_unpublished_size_asks_for_the_scale(tmp_path: Path) -> None:
    layouts.write_pair(tmp_path / "x" / "view1.png", tmp_path / "x" / "view5.png")
    layouts.write_png8(tmp_path / "x" / "disp1.png", np.full((layouts.HEIGHT, layouts.WIDTH), 20))
    with pytest.raises(InputError, match="the option `scale`"):
        open_dataset("middlebury2006", tmp_path)[0]


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda root: open_dataset("kiti", root), "no dataset 'kiti'; expected one of sceneflow"),
        (
            lambda root: open_dataset("kitti2015", root, split="dev"),
            "no split 'dev'; expected one of train, val",
        ),
        (
            lambda root: open_dataset("kitti2015", root, render="x"),
            "no option 'render'; expected one of pseudo_labels",
        ),
        (lambda root: open_dataset("sceneflow", root, render="x"), "no rendering 'x'"),
        (lambda root: open_dataset("sceneflow", root, subsets="Monkey"), "no subset 'Monkey'"),
        (lambda root: open_dataset("middlebury", root, resolution="X"), "no resolution 'X'"),
    ],
)
def test_unknown_names_list_the_known_ones(call, part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(part)):
        call(tmp_path)
