"""`data check` finds what is there, and names what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from aanet.data.datasets import DATASETS
from aanet.data.layout import companion, find
from aanet.data.layout_check import GroupReport, check_layout
from aanet.errors import AanetError
from helpers import layouts


def group(report_of: str, root: Path, title: str) -> GroupReport:
    return next(group for group in check_layout(report_of, root).groups if group.title == title)


def test_stars_mean_the_same_in_every_pattern_of_a_group() -> None:
    for dataset in DATASETS.values():
        for group in dataset.CARD.groups:
            assert len({pattern.count("*") for _, pattern, _ in group.parts()}) == 1, group.title


def test_a_full_scene_flow_has_the_papers_number_of_pairs() -> None:
    final = {
        g.title: g.complete or 0 for g in DATASETS["sceneflow"].CARD.groups if g.title.endswith("finalpass")
    }
    assert sum(n for title, n in final.items() if " train " in title) == 35454
    assert sum(n for title, n in final.items() if " test " in title) == 4370


@pytest.mark.parametrize(
    "name", ["sceneflow", "kitti2012", "kitti2015", "middlebury", "middlebury2006", "eth3d", "folder"]
)
def test_a_whole_dataset_is_usable_and_an_empty_folder_is_not(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert not check_layout(name, tmp_path / "empty").usable
    assert check_layout(name, getattr(layouts, name)(tmp_path / "full")).usable


def test_missing_files_are_named(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    (tmp_path / "training" / "image_3" / "000002_10.png").unlink()
    report = check_layout("kitti2015", tmp_path)
    train = report.groups[0]
    assert [(part.what, part.found) for part in train.parts] == [
        ("left images", 4),
        ("right images", 3),
        ("ground truth (or the next)", 4),
        ("visible in both views", 4),
        ("object map", 4),
        ("pseudo ground truth", 0),
    ]
    assert train.parts[1].missing == ["training/image_3/000002_10.png"]
    assert train.incomplete
    assert not report.usable


def test_optional_files_may_be_missing(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    for path in (tmp_path / "training" / "obj_map").iterdir():
        path.unlink()
    report = check_layout("kitti2015", tmp_path)
    assert len(report.groups[0].parts[4].missing) == 4
    assert report.usable


def test_kitti_needs_only_one_of_its_two_ground_truths(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    (tmp_path / "training" / "disp_occ_0" / "000002_10.png").unlink()
    assert check_layout("kitti2015", tmp_path).usable
    (tmp_path / "training" / "disp_noc_0" / "000002_10.png").unlink()
    truth = check_layout("kitti2015", tmp_path).groups[0].parts[2]
    assert truth.missing == ["training/disp_occ_0/000002_10.png"]


def test_absent_groups_are_no_fault(tmp_path: Path) -> None:
    layouts.sceneflow(tmp_path, "cleanpass")
    report = check_layout("sceneflow", tmp_path)
    assert group("sceneflow", tmp_path, "Monkaa train cleanpass").pairs == 1
    assert group("sceneflow", tmp_path, "Monkaa train finalpass").pairs == 0
    assert report.usable


def test_files_in_between_are_not_pairs(tmp_path: Path) -> None:
    layouts.folder(tmp_path)
    (tmp_path / "left" / "notes.txt").write_text("mine")
    (tmp_path / "left" / ".a.123.png").write_bytes(b"half written")
    (tmp_path / ".aanet-1" / "left").mkdir(parents=True)
    (tmp_path / ".aanet-1" / "left" / "a.png").write_bytes(b"half written")
    assert find(tmp_path, "*/left/*") == []
    (tmp_path / "left" / "more.png").mkdir()
    assert [captures for captures, _ in find(tmp_path, "left/*")] == [("a",), ("b",), ("c",)]


def test_companions_of_a_pattern_without_suffix_take_the_file_that_exists(tmp_path: Path) -> None:
    layouts.folder(tmp_path)
    assert companion(tmp_path, "disparity/*", ("b",)).name == "b.pfm"
    assert companion(tmp_path, "disparity/*", ("zzz",)).name == "zzz.png"


def test_names_with_pattern_characters_are_taken_as_they_are(tmp_path: Path) -> None:
    layouts.write_pair(tmp_path / "left" / "a[1].v2.png", tmp_path / "right" / "a[1].v2.png")
    captures, _ = find(tmp_path, "left/*")[0]
    assert companion(tmp_path, "right/*", captures).is_file()


def test_unknown_dataset_and_missing_root_are_explained(tmp_path: Path) -> None:
    with pytest.raises(AanetError, match="no dataset 'kitty'"):
        check_layout("kitty", tmp_path)
    with pytest.raises(AanetError, match=r"training/image_2/\*_10.png"):
        check_layout("kitti2015", tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(AanetError, match="file is a file"):
        check_layout("kitti2015", tmp_path / "file")
