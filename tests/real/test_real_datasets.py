"""The readers against real data: the disparity they give really maps the right image onto the left one."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from aanet.data.datasets import StereoDataset, open_dataset
from aanet.data.layout_check import check_layout
from aanet.data.sample import StereoSample


def warped_error(sample: StereoSample, shift: float = 0.0) -> float:
    """Median gray difference between the left image and the right one sampled at x - d, where both see it."""
    assert sample.disparity is not None
    assert sample.valid is not None
    left, right = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (sample.left, sample.right))
    height, width = left.shape
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    at = x - sample.disparity + np.float32(shift)
    warped = cv2.remap(right.astype(np.float32), at, y, cv2.INTER_LINEAR)
    seen = sample.valid & (at >= 0) & (at < width)
    if sample.visible is not None:
        seen &= sample.visible
    return float(np.median(np.abs(warped - left)[seen]))


def assert_truth_maps_right_to_left(dataset: StereoDataset) -> None:
    right = [warped_error(dataset[index]) for index in range(len(dataset))]
    wrong = [warped_error(dataset[index], shift=8) for index in range(len(dataset))]
    better = [a < b for a, b in zip(right, wrong, strict=True)]
    assert np.mean(better) >= 0.9, dict(zip([pair.key for pair in dataset.pairs], right, strict=True))
    assert np.median(right) < 0.6 * np.median(wrong)


def test_scene_flow(real_data: Path) -> None:
    root = real_data / "sceneflow"
    assert check_layout("sceneflow", root).usable
    train = open_dataset("sceneflow", root, "train", render="cleanpass")
    test = open_dataset("sceneflow", root, "test", render="cleanpass")
    assert (len(train), len(test)) == (2, 1)
    for dataset in (train, test):
        sample = dataset[0]
        assert sample.left.shape == (540, 960, 3)
        assert sample.valid is not None
        assert sample.valid.all()
        assert_truth_maps_right_to_left(dataset)


def test_kitti_2015(real_data: Path) -> None:
    root = real_data / "kitti2015"
    dataset = open_dataset("kitti2015", root, "all")
    assert len(dataset) == 13
    validation = open_dataset("kitti2015", root, "val")
    assert [pair.key for pair in validation.pairs] == ["000000", "000005", "000010"]
    for index in range(len(dataset)):
        valid = dataset[index].valid
        assert valid is not None
        assert 0.1 < valid.mean() < 0.4  # sparse, as a laser scanner leaves it
    assert_truth_maps_right_to_left(dataset)


def test_middlebury_2001_to_2006(real_data: Path) -> None:
    root = real_data / "middlebury"
    assert check_layout("middlebury2006", root).usable
    dataset = open_dataset("middlebury2006", root)
    assert len(dataset) == 33
    for index in range(0, len(dataset), 4):
        sample = dataset[index]
        assert sample.valid is not None
        assert sample.visible is not None
        assert sample.valid.mean() > 0.8
        assert 0.6 < sample.visible[sample.valid].mean() < 1
    assert_truth_maps_right_to_left(dataset)


def test_what_middlebury_calls_occluded_does_not_match(real_data: Path) -> None:
    """An occluded pixel looks unlike its alleged partner; else the mask would be inverted."""
    sample = open_dataset("middlebury2006", real_data / "middlebury")[1]
    assert sample.visible is not None
    visible = warped_error(sample)
    sample.visible = ~sample.visible
    assert warped_error(sample) > 1.5 * visible


def test_what_kitti_calls_occluded_lies_outside_the_right_image(real_data: Path) -> None:
    """In frame 000001, the one that has both ground truths here, nothing else is occluded."""
    dataset = open_dataset("kitti2015", real_data / "kitti2015", "all")
    sample = dataset[[pair.key for pair in dataset.pairs].index("000001")]
    assert sample.valid is not None
    assert sample.visible is not None
    assert sample.disparity is not None
    occluded = sample.valid & ~sample.visible
    assert occluded.any()
    assert (np.arange(sample.left.shape[1]) < sample.disparity)[occluded].all()
