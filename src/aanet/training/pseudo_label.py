"""Pseudo ground truth: predictions that pass the left-right check (section 3.4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aanet.data.datasets import StereoDataset
from aanet.errors import InputError
from aanet.inference.consistency import left_right_difference
from aanet.inference.options import MatchOptions
from aanet.inference.processing import Processing
from aanet.io.disparity import write_disparity
from aanet.matcher import StereoMatcher
from aanet.result import StereoResult
from aanet.typing import FloatMap


@dataclass(frozen=True)
class Label:
    """The pseudo ground truth of one pair."""

    name: str
    path: Path
    kept: float  # share of pixels that are labeled
    processing: Processing | None  # what was done to the pair


def write_pseudo_labels(
    matcher: StereoMatcher,
    dataset: StereoDataset,
    max_difference_px: float,
    options: MatchOptions | None = None,
    min_confidence: float = 0.0,
) -> Iterator[Label]:
    """Predict every pair and write the pixels that pass the left-right check into the dataset's folder.

    Args:
        matcher: The matcher.
        dataset: The pairs.
        max_difference_px: Largest difference of the disparities of the two views.
        options: Of the matches; the left-right check is always made.
        min_confidence: Smallest confidence of a label.
    """
    _refuse_outside(dataset)
    for index in range(len(dataset)):
        sample = dataset[index]
        result = matcher(sample.left, sample.right, options=options, check=True, inspect=False)
        labels = reliable(result, max_difference_px, min_confidence)
        path = dataset.pseudo_label_path(index)
        write_disparity(path, labels)
        yield Label(sample.name, path, float(np.isfinite(labels).mean()), result.processing)


def reliable(result: StereoResult, max_difference_px: float, min_confidence: float = 0.0) -> FloatMap:
    """The disparities that pass the left-right check and have the confidence; NaN elsewhere.

    Args:
        result: A match with `check=True`.
        max_difference_px: Largest difference of the disparities of the two views.
        min_confidence: Smallest confidence, in 0 … 1.
    """
    assert result.right_disparity is not None  # requested by `check`
    difference = left_right_difference(result.disparity, result.right_disparity)
    kept = (difference <= max_difference_px) & (result.confidence >= min_confidence)
    return np.where(kept, result.disparity, np.float32(np.nan))


def _refuse_outside(dataset: StereoDataset) -> None:
    """Raise an error if a map would be written elsewhere, as for the image "../a.png" in a CSV file."""
    for index in range(len(dataset)):
        path = dataset.pseudo_label_path(index)
        if not path.is_relative_to(dataset.root) or ".." in path.relative_to(dataset.root).parts:
            raise InputError(
                f"{dataset.pairs[index].left} is not inside {dataset.root}, so that its map would not be "
                "either; use images inside the folder."
            )
