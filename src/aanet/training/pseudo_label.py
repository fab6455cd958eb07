"""Pseudo ground truth: predictions that pass the left-right check (section 3.4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aanet.data.datasets import StereoDataset
from aanet.engines.semi_global import left_right_difference
from aanet.io.disparity import write_disparity
from aanet.matcher import StereoMatcher


@dataclass(frozen=True)
class Label:
    """The pseudo ground truth of one pair."""

    name: str
    path: Path
    kept: float  # share of pixels that passed the left-right check


def write_pseudo_labels(
    matcher: StereoMatcher, dataset: StereoDataset, max_difference_px: float
) -> Iterator[Label]:
    """Predict every pair and write the pixels that pass the left-right check into the dataset's folder."""
    for index in range(len(dataset)):
        sample = dataset[index]
        result = matcher(sample.left, sample.right, check=True, inspect=False)
        assert result.right_disparity is not None  # requested by `check`
        consistent = left_right_difference(result.disparity, result.right_disparity) <= max_difference_px
        path = dataset.pseudo_label_path(index)
        write_disparity(path, np.where(consistent, result.disparity, np.float32(np.nan)))
        yield Label(sample.name, path, float(consistent.mean()))
