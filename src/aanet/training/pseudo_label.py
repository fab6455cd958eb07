"""Pseudo ground truth: another network's predictions where both views agree (section 3.4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aanet.data.datasets import StereoDataset
from aanet.data.files import write_disparity
from aanet.data.sample import FloatMap, Mask, StereoSample
from aanet.models.network import StereoNetwork
from aanet.training.validation import predict


@dataclass(frozen=True)
class Label:
    """The pseudo ground truth of one pair."""

    name: str
    path: Path
    kept: float  # share of pixels that passed the left-right check


def write_pseudo_labels(
    network: StereoNetwork, dataset: StereoDataset, max_difference_px: float
) -> Iterator[Label]:
    """Predict every pair and write what passes the left-right check to where the reader looks for it."""
    for index in range(len(dataset)):
        sample = dataset[index]
        disparity, consistent = predict_consistent(network, sample, max_difference_px)
        path = dataset.pseudo_label_path(index)
        write_disparity(path, np.where(consistent, disparity, np.float32(np.nan)))
        yield Label(sample.name, path, float(consistent.mean()))


def predict_consistent(
    network: StereoNetwork, sample: StereoSample, max_difference_px: float
) -> tuple[FloatMap, Mask]:
    """The disparity of the left view, and where the right view's own disparity agrees with it.

    Mirrored, the right view is a left one: its disparity comes from the same network.
    """
    mirrored = replace(
        sample,
        left=np.ascontiguousarray(sample.right[:, ::-1]),
        right=np.ascontiguousarray(sample.left[:, ::-1]),
    )
    left, right = predict(network, sample), predict(network, mirrored)[:, ::-1]
    return left, consistent_pixels(left, right, max_difference_px)


def consistent_pixels(left: FloatMap, right: FloatMap, max_difference_px: float) -> Mask:
    """Where |d_left(x) − d_right(x − d_left(x))| is small, and the match lies inside the right view."""
    width = left.shape[1]
    column = np.round(np.arange(width) - left).astype(np.int64)
    inside = (column >= 0) & (column < width)
    matched = np.take_along_axis(right, column.clip(0, width - 1), axis=1)
    return np.asarray(inside & (np.abs(left - matched) <= max_difference_px))
