"""Pseudo ground truth: only what both views agree on, written where it is read."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

from aanet.data.datasets import open_dataset
from aanet.errors import InputError
from aanet.training.pseudo_label import Label, write_pseudo_labels
from helpers.fake_engine import FakeEngine


def labels_of(root: Path, on_left: float, on_right: float) -> list[Label]:
    """The labels of a matcher whose disparities are the same everywhere in each view."""
    views = itertools.cycle([on_left, on_right])
    engine = FakeEngine(lambda _: np.float32(next(views)))
    return list(write_pseudo_labels(engine.matcher, open_dataset("folder", root), 1.0))


def test_labels_are_read_back_by_the_dataset(pairs_folder: Path, tmp_path: Path) -> None:
    root = shutil.copytree(pairs_folder, tmp_path / "pairs")
    labels = labels_of(root, 4.25, 4.75)
    assert len(labels) == 5
    again = open_dataset("folder", root, pseudo_labels=True)
    for index, label in enumerate(labels):
        pseudo = again[index].pseudo_disparity
        assert pseudo is not None
        np.testing.assert_allclose(pseudo[:, 5:], 4.25, atol=1e-6)
        assert (pseudo[:, :4] == 0).all()  # their match lies outside the right view
        assert label.kept == pytest.approx((pseudo > 0).mean())


def test_what_the_views_disagree_on_is_no_label(pairs_folder: Path, tmp_path: Path) -> None:
    root = shutil.copytree(pairs_folder, tmp_path / "pairs")
    assert [label.kept for label in labels_of(root, 4.25, 9.0)] == [0.0] * 5


def test_nothing_is_written_outside_the_folder(pairs_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(pairs_folder, tmp_path / "pairs")
    table = tmp_path / "lists" / "pairs.csv"
    table.parent.mkdir()
    table.write_text("left,right\n../pairs/left/0.png,../pairs/right/0.png\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="is not inside"):
        labels_of(table, 4.25, 4.75)
    assert sorted(tmp_path.rglob("*")) == before
