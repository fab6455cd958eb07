"""Pairs of one's own: a folder, a CSV file, and mixtures of datasets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aanet.data.datasets import Mixed, open_dataset
from aanet.data.datasets.folder import _drawn
from aanet.data.sample import StereoSample
from aanet.errors import AanetError, InputError
from helpers import layouts


def write_csv(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


def test_folder_matches_by_name_whatever_the_format(tmp_path: Path) -> None:
    dataset = open_dataset("folder", layouts.folder(tmp_path))
    assert [pair.disparity and pair.disparity.suffix for pair in dataset.pairs] == [".png", ".pfm", ".npy"]


def test_folder_without_ground_truth_has_pairs_only(tmp_path: Path) -> None:
    layouts.write_pair(tmp_path / "left" / "x.jpg", tmp_path / "right" / "x.png")
    assert open_dataset("folder", tmp_path)[0].disparity is None


def test_zero_in_a_mask_takes_the_ground_truth_away(tmp_path: Path) -> None:
    layouts.folder(tmp_path)
    mask = np.full((layouts.HEIGHT, layouts.WIDTH), 1)
    mask[:, 20:] = 0
    mask[:, :5] = 128
    layouts.write_png8(tmp_path / "mask" / "a.png", mask)
    sample = open_dataset("folder", tmp_path)[0]
    assert sample.valid is not None
    assert sample.visible is not None
    assert sample.disparity is not None
    assert not sample.valid[:, 20:].any()
    assert sample.valid[10, 5:20].all()
    assert (sample.disparity[:, 20:] == 0).all()
    np.testing.assert_array_equal(sample.visible, mask == 1)


def test_csv_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    layouts.folder(tmp_path / "pairs")
    table = write_csv(
        tmp_path / "list.csv",
        "left,right,disparity,mask",
        "pairs/left/a.png,pairs/right/a.png,pairs/disparity/a.png,pairs/mask/a.png",
        "pairs/left/b.png,pairs/right/b.png,,",
    )
    dataset = open_dataset("folder", table)
    assert [pair.key for pair in dataset.pairs] == ["pairs/left/a", "pairs/left/b"]
    first, second = dataset[0], dataset[1]
    assert first.disparity is not None
    np.testing.assert_array_equal(first.disparity, np.nan_to_num(layouts.truth()))
    assert first.visible is not None
    assert second.disparity is None
    assert dataset.pseudo_label_path(1) == tmp_path / "disparity_pseudo" / "pairs" / "left" / "b.pfm"


def test_csv_with_two_columns_is_enough(tmp_path: Path) -> None:
    layouts.write_pair(tmp_path / "l.png", tmp_path / "r.png")
    assert open_dataset("folder", write_csv(tmp_path / "t.csv", "left,right", "l.png,r.png"))[0].valid is None


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        (
            ("left,rigth", "l.png,r.png"),
            "must name the columns left and right and may name disparity and mask",
        ),
        (
            ("left,right,depth", "l.png,r.png,d.png"),
            "must name the columns left and right and may name disparity and mask",
        ),
        (("left,right",), "lists no pairs"),
        (("left,right", "l.png,"), "line 2: expected a left and a right file"),
    ],
)
def test_bad_csv_is_explained(rows: tuple[str, ...], part: str, tmp_path: Path) -> None:
    with pytest.raises(AanetError, match=part):
        len(open_dataset("folder", write_csv(tmp_path / "t.csv", *rows)))


def test_missing_csv_and_missing_mask_are_named(tmp_path: Path) -> None:
    with pytest.raises(AanetError, match=r"t.csv does not exist"):
        len(open_dataset("folder", tmp_path / "t.csv"))
    layouts.write_pair(tmp_path / "l.png", tmp_path / "r.png")
    table = write_csv(tmp_path / "t.csv", "left,right,mask", "l.png,r.png,gone.png")
    with pytest.raises(AanetError, match=r"gone.png does not exist"):
        open_dataset("folder", table)[0]


def keys(root: Path, split: str) -> list[str]:
    return [pair.key for pair in open_dataset("folder", root, split).pairs]


def write_pairs(root: Path, names: list[str]) -> None:
    """Empty files: listing the pairs reads none of them."""
    for name in names:
        for side in ("left", "right"):
            path = root / side / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


def test_a_fifth_of_a_folder_is_for_validation_and_stays_so_when_pairs_are_added(tmp_path: Path) -> None:
    write_pairs(tmp_path, [f"{number:04d}" for number in range(0, 400, 2)])
    train, val = keys(tmp_path, "train"), keys(tmp_path, "val")
    assert sorted(train + val) == keys(tmp_path, "all")
    assert 30 <= len(val) <= 50
    write_pairs(tmp_path, [f"{number:04d}" for number in range(1, 400, 2)])
    assert set(train) < set(keys(tmp_path, "train"))
    assert set(val) < set(keys(tmp_path, "val"))


def test_the_split_is_that_of_the_hash() -> None:
    # `printf d | sha256sum` begins with 18, f with 25, c with 2e; b with 3e, which is above 0.2 * 256 = 0x33.
    assert _drawn(["a", "b", "c", "d", "e", "f"]) == ["d", "f", "c"]


@settings(deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=2, max_size=9, unique=True))
def test_several_pairs_are_never_all_in_one_split(names: list[str]) -> None:
    assert 0 < len(_drawn(names)) < len(names)


def test_a_list_in_the_folder_names_the_pairs_for_validation(tmp_path: Path) -> None:
    write_pairs(tmp_path, ["hall_1", "hall_2", "hall_30", "yard", "yard[1]", "#1"])
    (tmp_path / "val.txt").write_text("\ufeff# held out\n\nyard[1]\r\n hall_?\n", encoding="utf-8")
    assert keys(tmp_path, "val") == ["hall_1", "hall_2", "yard[1]"]
    assert keys(tmp_path, "train") == ["#1", "hall_30", "yard"]
    assert len(keys(tmp_path, "all")) == 6


def test_an_empty_split_of_a_folder_is_explained(tmp_path: Path) -> None:
    write_pairs(tmp_path, ["a"])
    assert keys(tmp_path, "train") == ["a"]
    with pytest.raises(AanetError, match=r"'val' of folder is empty: all 1 pairs .* other split.*val\.txt"):
        keys(tmp_path, "val")
    (tmp_path / "val.txt").write_text("*\n")
    assert keys(tmp_path, "val") == ["a"]
    with pytest.raises(AanetError, match=r"'train' of folder is empty: all 1 pairs"):
        keys(tmp_path, "train")


def test_the_pairs_of_a_csv_file_are_split_too(tmp_path: Path) -> None:
    rows = [f"l{number}.png,r{number}.png" for number in range(50)]
    table = write_csv(tmp_path / "t.csv", "left,right", *rows)
    train, val = keys(table, "train"), keys(table, "val")
    assert sorted(train + val) == sorted(keys(table, "all"))
    assert 5 <= len(val) <= 15


class Counted:
    """A dataset of numbered one-pixel pairs."""

    def __init__(self, name: str, length: int) -> None:
        self.name = name
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> StereoSample:
        assert 0 <= index < self.length
        pixel = np.zeros((1, 1, 3), np.uint8)
        return StereoSample(f"{self.name}{index}", pixel, pixel)


def test_a_mixture_without_weights_is_the_datasets_joined() -> None:
    mixed = Mixed([Counted("a", 2), Counted("b", 3)])
    assert [mixed[i].name for i in range(len(mixed))] == ["a0", "a1", "b0", "b1", "b2"]
    assert mixed.name == "a+b"
    assert mixed[-1].name == "b2"
    with pytest.raises(IndexError):
        mixed[5]


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    data=st.data(),
)
def test_a_mixture_keeps_the_shares_and_loses_no_sample(lengths: list[int], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.floats(0.1, 10), min_size=len(lengths), max_size=len(lengths)))
    mixed = Mixed([Counted(f"{k}-", n) for k, n in enumerate(lengths)], weights)
    names = [mixed[i].name for i in range(len(mixed))]
    assert set(names) == {f"{k}-{i}" for k, n in enumerate(lengths) for i in range(n)}
    for k, weight in enumerate(weights):
        share = sum(name.startswith(f"{k}-") for name in names)
        assert abs(share - len(names) * weight / sum(weights)) <= len(lengths)


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, -1], [1, float("nan")]])
def test_weights_must_be_positive_and_one_for_each(weights: list[float]) -> None:
    with pytest.raises(AanetError, match="2 positive weights"):
        Mixed([Counted("a", 1), Counted("b", 1)], weights)


def test_an_empty_dataset_cannot_be_mixed() -> None:
    with pytest.raises(InputError, match="must not contain empty"):
        Mixed([Counted("a", 1), Counted("b", 0)])
