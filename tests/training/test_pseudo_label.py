"""Pseudo ground truth: only what both views agree on, written where it is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from aanet.data.datasets import open_dataset
from aanet.result import StereoResult
from aanet.training.pseudo_label import Label, write_pseudo_labels


class TwoPlanes:
    """A stand-in matcher: both disparities are the same everywhere."""

    def __init__(self, on_left: float, on_right: float) -> None:
        self.on_left, self.on_right = on_left, on_right

    def __call__(self, left: np.ndarray, _right: np.ndarray, *, check: bool, inspect: bool) -> StereoResult:
        assert check
        assert not inspect
        size = left.shape[:2]
        disparity, confidence = np.full(size, self.on_left, np.float32), np.ones(size, np.float32)
        right = np.full(size, self.on_right, np.float32)
        return StereoResult(disparity=disparity, confidence=confidence, left=left, right_disparity=right)


def labels_of(matcher: TwoPlanes, root: Path) -> list[Label]:
    return list(write_pseudo_labels(matcher, open_dataset("folder", root), 1.0))  # type: ignore[arg-type]


def test_labels_are_read_back_by_the_dataset(pairs_folder: Path, tmp_path: Path) -> None:
    root = shutil.copytree(pairs_folder, tmp_path / "pairs")
    labels = labels_of(TwoPlanes(4.25, 4.75), root)
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
    assert [label.kept for label in labels_of(TwoPlanes(4.25, 9.0), root)] == [0.0] * 5
