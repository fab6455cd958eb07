"""Pseudo ground truth: only what both views agree on, written where it is read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from aanet.data.datasets import open_dataset
from aanet.models.network import StereoOutput
from aanet.training.pseudo_label import consistent_pixels, predict_consistent, write_pseudo_labels
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


def naive_consistency(left: np.ndarray, right: np.ndarray, limit: float) -> np.ndarray:
    result = np.zeros(left.shape, bool)
    for y, x in np.ndindex(left.shape):
        match = round(x - float(left[y, x]))
        if 0 <= match < left.shape[1]:
            result[y, x] = abs(left[y, x] - right[y, match]) <= limit
    return result


def test_the_left_right_check_is_the_naive_one() -> None:
    rng = np.random.default_rng(0)
    left = (rng.random((6, 20)) * 8).astype(np.float32)
    right = (left + rng.normal(0, 1.5, left.shape)).astype(np.float32)
    expected = naive_consistency(left, right, 1.0)
    assert 5 < expected.sum() < 115
    np.testing.assert_array_equal(consistent_pixels(left, right, 1.0), expected)


def test_the_check_is_done_on_the_right_view_mirrored(pairs_folder: Path) -> None:
    sample = open_dataset("folder", pairs_folder)[1]
    sample = replace(sample, left=np.full_like(sample.left, 30), right=np.full_like(sample.right, 220))
    agreeing = ByMeanColour({-1.6: 5.0, 1.8: 5.0})
    disagreeing = ByMeanColour({-1.6: 5.0, 1.8: 9.0})
    disparity, consistent = predict_consistent(agreeing, sample, 1.0)  # type: ignore[arg-type]  # a stand-in
    assert disparity.shape == sample.left.shape[:2]
    assert consistent[:, 5:].all()
    assert not consistent[:, :5].any()  # their match lies outside the right view
    assert not predict_consistent(disagreeing, sample, 1.0)[1].any()  # type: ignore[arg-type]
    assert agreeing.seen == [(64, 112)] * 2  # padded from 56×112


def test_labels_are_read_back_by_the_dataset(pairs_folder: Path, tmp_path: Path) -> None:
    root = shutil.copytree(pairs_folder, tmp_path / "pairs")
    network = ByMeanColour({0.0: 4.25})
    labels = list(write_pseudo_labels(network, open_dataset("folder", root), 1.0))  # type: ignore[arg-type]
    assert len(labels) == 5
    again = open_dataset("folder", root, pseudo_labels=True)
    for index, label in enumerate(labels):
        pseudo = again[index].pseudo_disparity
        assert pseudo is not None
        np.testing.assert_allclose(pseudo[:, 5:], 4.25, atol=1e-6)
        assert (pseudo[:, :4] == 0).all()
        assert label.kept == pytest.approx((pseudo > 0).mean())


def test_validation_scores_all_pixels_with_truth(pairs_folder: Path) -> None:
    sample = open_dataset("folder", pairs_folder)[0]  # true disparity 2
    sums = score(ByMeanColour({0.0: 4.5}), sample)  # type: ignore[arg-type]
    assert sums.epe == pytest.approx(2.5)
    assert (sums.bad(2.0), sums.bad(3.0)) == (100, 0)
    assert sums.pixels == sample.left.shape[0] * sample.left.shape[1]


def test_lengths_are_padded_to_what_the_network_accepts() -> None:
    assert [padded_length(n, 12, 48) for n in (1, 48, 49, 60, 61)] == [48, 48, 60, 60, 72]
