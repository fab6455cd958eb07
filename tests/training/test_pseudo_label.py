"""Pseudo ground truth: only what both views agree on, written where it is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from aanet.data.datasets import open_dataset
from aanet.models.network import StereoOutput
from aanet.result import StereoResult
from aanet.training.pseudo_label import Label, write_pseudo_labels
from aanet.training.validation import padded_length, score


class ByMeanColour(nn.Module):
    """A stand-in network: the disparity is the same everywhere and told by the left image alone."""

    size_multiple, minimum_size = 16, 64

    def __init__(self, by_left: dict[float, float]) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.by_left = by_left
        self.seen: list[tuple[int, int]] = []

    def forward(self, left: Tensor, _right: Tensor) -> StereoOutput:
        self.seen.append((left.shape[2], left.shape[3]))
        key = min(self.by_left, key=lambda mean: abs(mean - float(left.mean())))
        disparity = torch.full((1, left.shape[2], left.shape[3]), self.by_left[key])
        return StereoOutput([disparity * self.scale], disparity[:, None])


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


def test_validation_scores_all_pixels_with_truth(pairs_folder: Path) -> None:
    sample = open_dataset("folder", pairs_folder)[0]  # true disparity 2
    sums = score(ByMeanColour({0.0: 4.5}), sample)  # type: ignore[arg-type]
    assert sums.epe == pytest.approx(2.5)
    assert (sums.bad(2.0), sums.bad(3.0)) == (100, 0)
    assert sums.pixels == sample.left.shape[0] * sample.left.shape[1]


def test_lengths_are_padded_to_what_the_network_accepts() -> None:
    assert [padded_length(n, 12, 48) for n in (1, 48, 49, 60, 61)] == [48, 48, 60, 60, 72]
