"""Every benchmark is read in its own layout; unknown, occluded and foreground pixels come out as masks."""

from __future__ import annotations

import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.data.datasets import DATASETS, StereoDataset, open_dataset
from aanet.data.sample import StereoSample
from helpers import layouts

BUILDERS = {
    "sceneflow": layouts.sceneflow,
    "kitti2012": layouts.kitti2012,
    "kitti2015": layouts.kitti2015,
    "middlebury": layouts.middlebury,
    "middlebury2006": layouts.middlebury2006,
    "eth3d": layouts.eth3d,
    "folder": layouts.folder,
}


def keys(dataset: StereoDataset) -> list[str]:
    return [pair.key for pair in dataset.pairs]


def assert_truth(sample: StereoSample) -> None:
    expected = layouts.truth()
    assert sample.disparity is not None
    assert sample.valid is not None
    assert sample.disparity.dtype == np.float32
    np.testing.assert_array_equal(sample.valid, np.isfinite(expected))
    np.testing.assert_array_equal(sample.disparity, np.nan_to_num(expected))


@pytest.mark.parametrize("name", list(DATASETS))
def test_ground_truth_is_exact_and_unknown_pixels_are_masked(name: str, tmp_path: Path) -> None:
    dataset = open_dataset(name, BUILDERS[name](tmp_path))
    for sample in (dataset[i] for i in range(len(dataset))):
        assert sample.left.shape == sample.right.shape == (layouts.HEIGHT, layouts.WIDTH, 3)
        assert sample.left.dtype == np.uint8
        assert not np.array_equal(sample.left, sample.right)
        assert_truth(sample)


def test_images_are_rgb(tmp_path: Path) -> None:
    dataset = open_dataset("kitti2015", layouts.kitti2015(tmp_path))
    stored = cv2.imread(str(dataset.pairs[0].left))
    np.testing.assert_array_equal(dataset[0].left, stored[:, :, ::-1])


@pytest.mark.parametrize(
    "name", ["kitti2012", "kitti2015", "middlebury", "middlebury2006", "eth3d", "folder"]
)
def test_occluded_pixels_are_not_visible(name: str, tmp_path: Path) -> None:
    sample = open_dataset(name, BUILDERS[name](tmp_path))[0]
    assert sample.visible is not None
    assert sample.valid is not None
    np.testing.assert_array_equal(sample.visible[sample.valid], ~layouts.occluded()[sample.valid])


def test_object_map_of_kitti_2015_is_the_foreground(tmp_path: Path) -> None:
    sample = open_dataset("kitti2015", layouts.kitti2015(tmp_path))[0]
    assert sample.foreground is not None
    assert sample.foreground[:, 30:].all()
    assert not sample.foreground[:, :30].any()


@pytest.mark.parametrize("name", ["kitti2012", "kitti2015", "middlebury", "eth3d"])
def test_test_splits_have_no_ground_truth(name: str, tmp_path: Path) -> None:
    sample = open_dataset(name, BUILDERS[name](tmp_path), split="test")[0]
    assert sample.disparity is None
    assert sample.valid is None
    assert sample.visible is None


def test_scene_flow_trains_on_three_subsets_and_tests_on_one(tmp_path: Path) -> None:
    layouts.sceneflow(tmp_path)
    train = open_dataset("sceneflow", tmp_path, split="train")
    assert keys(train) == [
        "A/0000/0006",
        "C/0012/0006",
        "a_rain_of_stones_x2/0006",
        "15mm_focallength/scene_forwards/fast/0006",
    ]
    assert keys(open_dataset("sceneflow", tmp_path, split="test")) == ["B/0003/0006"]
    assert len(open_dataset("sceneflow", tmp_path, subsets="Monkaa,Driving")) == 2


def test_scene_flow_passes_are_separate_but_share_ground_truth(tmp_path: Path) -> None:
    layouts.sceneflow(tmp_path, "cleanpass")
    clean = open_dataset("sceneflow", tmp_path, render="cleanpass")
    assert "frames_cleanpass" in str(clean.pairs[0].left)
    assert_truth(clean[0])


def test_kitti_validation_is_every_fifth_frame(tmp_path: Path) -> None:
    for frame in range(200):
        left = tmp_path / "training" / "image_2" / f"{frame:06d}_10.png"
        left.parent.mkdir(parents=True, exist_ok=True)
        left.touch()
    train = open_dataset("kitti2015", tmp_path, split="train")
    val = open_dataset("kitti2015", tmp_path, split="val")
    assert (len(train), len(val), len(open_dataset("kitti2015", tmp_path, split="all"))) == (160, 40, 200)
    assert keys(val)[:3] == ["000000", "000005", "000010"]
    assert not set(keys(train)) & set(keys(val))


def test_kitti_2012_validates_on_its_last_frame_too(tmp_path: Path) -> None:
    for frame in range(194):
        left = tmp_path / "training" / "colored_0" / f"{frame:06d}_10.png"
        left.parent.mkdir(parents=True, exist_ok=True)
        left.touch()
    val = open_dataset("kitti2012", tmp_path, split="val")
    assert len(val) == 40
    assert keys(val)[-1] == "000193"
    assert len(open_dataset("kitti2012", tmp_path, split="train")) == 154


def test_second_frames_of_kitti_are_not_pairs(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    layouts.write_image(tmp_path / "training" / "image_2" / "000001_11.png")
    assert keys(open_dataset("kitti2015", tmp_path, split="all")) == ["000000", "000001", "000002", "000005"]


def test_kitti_2012_is_read_in_gray_where_there_is_no_color(tmp_path: Path) -> None:
    sample = open_dataset("kitti2012", layouts.kitti2012(tmp_path, gray=True))[0]
    np.testing.assert_array_equal(sample.left[:, :, 0], sample.left[:, :, 2])
    assert_truth(sample)


def test_kitti_without_occluded_truth_falls_back_to_the_visible(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    (tmp_path / "training" / "disp_occ_0" / "000001_10.png").unlink()
    sample = open_dataset("kitti2015", tmp_path)[0]
    assert sample.valid is not None
    assert not sample.valid[layouts.occluded()].any()
    assert sample.valid.any()


def test_middlebury_resolution_chooses_the_folder(tmp_path: Path) -> None:
    layouts.middlebury(tmp_path, "Q")
    assert keys(open_dataset("middlebury", tmp_path, resolution="Q")) == ["Adirondack", "Jadeplant"]


@pytest.mark.parametrize(
    ("left", "right", "disparity", "size", "scale"),
    [
        ("view1.png", "view5.png", "disp1.png", (370, 427), 3),
        ("view1.png", "view5.png", "disp1.png", (555, 641), 2),
        ("im2.ppm", "im6.ppm", "disp2.pgm", (381, 432), 8),
        ("im2.ppm", "im6.ppm", "disp2.pgm", (375, 450), 4),
        ("im2.png", "im6.png", "disp2.png", (750, 900), 2),
    ],
)
def test_eight_bit_disparities_are_scaled_as_published(
    left: str, right: str, disparity: str, size: tuple[int, int], scale: int, tmp_path: Path
) -> None:
    scene = tmp_path / "scene"
    for name in (left, right):
        layouts.write_image(scene / name, size=size)
    stored = np.full(size, 48)
    stored[0, 0] = 0
    layouts.write_png8(scene / disparity, stored)
    sample = open_dataset("middlebury2006", tmp_path)[0]
    assert sample.disparity is not None
    assert sample.valid is not None
    assert sample.disparity[5, 5] == np.float32(48 / scale)
    assert not sample.valid[0, 0]


def test_scale_of_a_size_that_was_never_published_must_be_given(tmp_path: Path) -> None:
    layouts.write_pair(tmp_path / "x" / "view1.png", tmp_path / "x" / "view5.png")
    layouts.write_png8(tmp_path / "x" / "disp1.png", np.full((layouts.HEIGHT, layouts.WIDTH), 20))
    sample = open_dataset("middlebury2006", tmp_path, scale=4)[0]
    assert sample.disparity is not None
    assert sample.disparity[0, 0] == 5


def test_pair_names_tell_dataset_and_frame(tmp_path: Path) -> None:
    assert open_dataset("kitti2015", layouts.kitti2015(tmp_path))[0].name == "kitti2015 000001"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("sceneflow", "FlyingThings3D/disparity_pseudo/TRAIN/A/0000/left/0006.pfm"),
        ("kitti2012", "training/disp_pseudo/000003_10.png"),
        ("kitti2015", "training/disp_pseudo_0/000001_10.png"),
        ("middlebury", "disparity_pseudo/trainingH/Adirondack.pfm"),
        ("middlebury2006", "disparity_pseudo/2003-cones.pfm"),
        ("eth3d", "disparity_pseudo/two_view_training/delivery_area_1l.pfm"),
        ("folder", "disparity_pseudo/a.pfm"),
    ],
)
def test_pseudo_labels_are_read_from_where_they_are_written(name: str, place: str, tmp_path: Path) -> None:
    dataset = open_dataset(name, BUILDERS[name](tmp_path), pseudo_labels=True)
    path = dataset.pseudo_label_path(0)
    assert path == tmp_path / place
    labels = np.full((layouts.HEIGHT, layouts.WIDTH), 3.5, np.float32)
    labels[0, 0] = np.nan
    (layouts.write_png16 if path.suffix == ".png" else layouts.write_pfm)(path, labels)
    sample = dataset[0]
    assert sample.pseudo_disparity is not None
    np.testing.assert_array_equal(sample.pseudo_disparity, np.nan_to_num(labels))


def test_pseudo_labels_are_not_read_unless_asked_for(tmp_path: Path) -> None:
    assert open_dataset("kitti2015", layouts.kitti2015(tmp_path))[0].pseudo_disparity is None


def test_datasets_can_be_sent_to_workers_and_iterated(tmp_path: Path) -> None:
    dataset = open_dataset("folder", layouts.folder(tmp_path))
    copy = pickle.loads(pickle.dumps(dataset))
    assert [sample.name for sample in copy] == ["folder a", "folder b", "folder c"]
    assert dataset[-1].name == "folder c"
