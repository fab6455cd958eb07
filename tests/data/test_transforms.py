"""Augmentation keeps the pair and its truth consistent, and draws what the paper drew."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.data import transforms as T
from aanet.data.sample import StereoSample
from aanet.data.transforms import geometric, photometric
from aanet.errors import InputError


def slanted(height: int = 40, width: int = 60, slope: float = 0.05) -> StereoSample:
    """A smooth ramp in the right view and the left view it makes under d(x) = 2 + slope·x."""
    x = np.arange(width)
    disparity = np.broadcast_to(2 + slope * x, (height, width)).astype(np.float32)
    gray_of = lambda u: 60 + 1.5 * u  # noqa: E731 - one formula for both views
    left = np.broadcast_to(gray_of(x - disparity[0])[None, :, None], (height, width, 3))
    right = np.broadcast_to(gray_of(x)[None, :, None], (height, width, 3))
    return StereoSample(
        "slanted",
        left.round().astype(np.uint8),
        right.round().astype(np.uint8),
        disparity.copy(),
        np.ones((height, width), bool),
        visible=disparity <= x,
    )


def labeled(height: int = 30, width: int = 50) -> StereoSample:
    """Every pixel tells its own position, so that a misplaced one is seen."""
    ys, xs = np.mgrid[:height, :width]
    image = np.stack([ys, xs, ys + xs], axis=-1).astype(np.uint8)
    disparity = (ys * 100 + xs + 1).astype(np.float32)
    return StereoSample("labeled", image, image.copy(), disparity, pseudo_disparity=disparity.copy())


def warp_error(sample: StereoSample) -> float:
    """Median gray-level difference between the left view and the right view warped by the truth."""
    assert sample.disparity is not None
    assert sample.valid is not None
    height, width = sample.left.shape[:2]
    errors = []
    for y in range(height):
        for x in range(width):
            u = x - float(sample.disparity[y, x])
            if sample.valid[y, x] and 0 <= u <= width - 1:
                whole = min(int(u), width - 2)
                row = sample.right[y, :, 0].astype(float)
                value = row[whole] + (u - whole) * (row[whole + 1] - row[whole])
                errors.append(abs(value - float(sample.left[y, x, 0])))
    return float(np.median(errors))


def test_crop_cuts_every_map_at_the_same_place() -> None:
    result = T.RandomCrop(11, 17)(labeled(), np.random.default_rng(3))
    assert result.disparity is not None
    assert result.pseudo_disparity is not None
    assert result.left.shape == (11, 17, 3)
    np.testing.assert_array_equal(result.left[..., 0] * 100.0 + result.left[..., 1] + 1, result.disparity)
    np.testing.assert_array_equal(result.pseudo_disparity, result.disparity)
    np.testing.assert_array_equal(result.right, result.left)


def test_crop_reaches_every_corner() -> None:
    sample = labeled(6, 8)
    corners = {
        tuple(T.RandomCrop(5, 7)(sample, np.random.default_rng(i)).left[0, 0, :2].tolist()) for i in range(60)
    }
    assert corners == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_small_images_are_padded_with_unknown_truth_at_the_top_and_right() -> None:
    sample = labeled(10, 12)
    result = T.RandomCrop(14, 15)(sample, np.random.default_rng(0))
    assert result.disparity is not None
    assert result.valid is not None
    assert not result.valid[:4].any()
    assert not result.valid[:, 12:].any()
    assert result.valid[4:, :12].all()
    np.testing.assert_array_equal(result.disparity[4:, :12], sample.disparity)
    np.testing.assert_array_equal(result.left[0, :12], sample.left[0])  # the border is repeated
    np.testing.assert_array_equal(result.left[4:, 14], sample.left[:, 11])


@pytest.mark.parametrize("crop", [(21, 12), (10, 25), (100, 120)])
def test_a_crop_that_would_be_mostly_padding_is_refused(crop: tuple[int, int]) -> None:
    for cut in (T.RandomCrop(*crop), T.RandomScaleCrop(*crop, (0.0, 1.0), 0.1)):
        with pytest.raises(InputError, match=f"10×12 pixels.*crop of {crop[0]}×{crop[1]} would be padding"):
            cut(labeled(10, 12), np.random.default_rng(0))
    T.require_size("KITTI's lowest images in the paper's largest crop", (370, 1224, 3), (384, 1248))


def test_vertical_flip_turns_everything_over() -> None:
    sample = labeled()
    result = T.RandomVerticalFlip(1.0)(sample, np.random.default_rng(0))
    assert sample.disparity is not None
    np.testing.assert_array_equal(result.left, sample.left[::-1])
    np.testing.assert_array_equal(result.disparity, sample.disparity[::-1])
    assert T.RandomVerticalFlip(0.0)(sample, np.random.default_rng(0)) is sample


@pytest.mark.parametrize("size", [(40, 120), (80, 60), (20, 30), (55, 85)])
def test_resized_pairs_still_match_by_their_truth(size: tuple[int, int]) -> None:
    assert warp_error(slanted()) < 1
    assert warp_error(geometric.resize(slanted(), *size)) < 1.5


def test_scale_crop_scales_disparity_with_the_width() -> None:
    transform = T.RandomScaleCrop(24, 32, (-0.5, 0.5), 0.3)
    for seed in range(8):
        result = transform(slanted(), np.random.default_rng(seed))
        assert result.left.shape == (24, 32, 3)
        assert warp_error(result) < 1.5


def test_resizing_a_disparity_edge_makes_no_surface_between() -> None:
    disparity = np.where(np.arange(40) < 20, 5.0, 30.0).astype(np.float32) * np.ones((10, 1), np.float32)
    result = geometric.resample_disparity(disparity, np.ones((10, 40), bool), 17, 71)
    assert set(np.unique(result)) == {5.0, 30.0}


def test_resizing_sparse_truth_copies_values_only_from_known_pixels() -> None:
    rng = np.random.default_rng(0)
    known = rng.random((20, 30)) < 0.3
    disparity = np.where(known, 7.0, 0.0).astype(np.float32)
    sample = StereoSample("sparse", *[np.zeros((20, 30, 3), np.uint8)] * 2, disparity, known)
    result = geometric.resize(sample, 40, 90)
    assert result.disparity is not None
    assert result.valid is not None
    np.testing.assert_allclose(result.disparity[result.valid], 21.0, rtol=1e-6)
    assert np.all(result.disparity[~result.valid] == 0)


def test_color_changes_both_views_alike_unless_asymmetric() -> None:
    image = np.random.default_rng(1).integers(0, 256, (16, 20, 3)).astype(np.uint8)
    sample = StereoSample("colors", image, image.copy())
    changed = different = 0
    for seed in range(30):
        same = T.RandomColor()(sample, np.random.default_rng(seed))
        np.testing.assert_array_equal(same.left, same.right)
        changed += not np.array_equal(same.left, image)
        own = T.RandomColor(asymmetric=1.0)(sample, np.random.default_rng(seed))
        different += not np.array_equal(own.left, own.right)
    assert 10 < changed < 30  # one of five with probability ½ · ½ leaves some pairs as they were
    assert different > 10


def test_color_changes_are_what_their_names_say() -> None:
    image = np.random.default_rng(1).random((8, 9, 3)).astype(np.float32) * 0.4 + 0.1
    np.testing.assert_allclose(photometric._brightness(2.0)(image), image * 2, rtol=1e-6)
    np.testing.assert_allclose(photometric._gamma(1.5)(image), image**1.5, rtol=1e-4)
    flatter = photometric._contrast(0.8)(image)
    assert flatter.std() < image.std()
    np.testing.assert_allclose(
        (flatter @ photometric.LUMA).mean(), (image @ photometric.LUMA).mean(), rtol=1e-5
    )
    grayer = photometric._saturation(0.0)(image)
    np.testing.assert_allclose(grayer[..., 0], grayer[..., 2], rtol=1e-5)
    np.testing.assert_allclose(
        photometric._hue(1 / 3)(image), image[..., [2, 0, 1]], atol=1e-3
    )  # a third turn: R → G
    np.testing.assert_allclose(photometric._hue(0.1)(photometric._hue(-0.1)(image)), image, atol=1e-3)


def test_erasing_touches_only_the_right_view() -> None:
    image = np.random.default_rng(1).integers(0, 256, (120, 160, 3)).astype(np.uint8)
    sample = StereoSample("erase", image, image.copy())
    result = T.RandomErase(1.0, max_patches=1, size_px=(10, 20))(sample, np.random.default_rng(4))
    np.testing.assert_array_equal(result.left, image)
    erased = (result.right != image).any(axis=-1)
    assert 0 < erased.sum() <= 20 * 20
    assert len(np.unique(result.right[erased], axis=0)) == 1


def test_a_patch_may_show_another_place_of_the_view() -> None:
    image = np.random.default_rng(1).integers(0, 256, (60, 80, 3)).astype(np.uint8)
    sample = StereoSample("erase", image, image.copy())
    erase = T.RandomErase(1.0, max_patches=1, size_px=(10, 10), other=1.0)
    result = erase(sample, np.random.default_rng(4)).right
    rows, columns = np.nonzero((result != image).any(axis=-1))
    patch = result[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    height, width = patch.shape[:2]
    places = [
        (y, x)
        for y in range(60 - height + 1)
        for x in range(80 - width + 1)
        if np.array_equal(image[y : y + height, x : x + width], patch)
    ]
    assert len(places) == 1


def test_a_rotated_right_view_moves_up_on_one_side_and_down_on_the_other() -> None:
    ramp = np.broadcast_to((np.arange(60) * 4)[:, None, None], (60, 401, 3)).astype(np.uint8)
    sample = StereoSample("ramp", ramp, ramp.copy())
    moved = T.RandomVerticalShift(1.0, 0.0, max_rotation_deg=1.0)(sample, np.random.default_rng(3))
    by = (moved.right[30, :, 0].astype(float) - ramp[30, :, 0]) / 4  # pixels, per column
    assert by[200] == 0
    assert by[0] == pytest.approx(-by[400], abs=0.3)
    assert 0.3 < abs(by[0]) < 200 * np.tan(np.deg2rad(1.0)) + 0.3
    np.testing.assert_array_equal(moved.left, ramp)


def test_vertical_shift_moves_the_right_view_by_at_most_the_limit() -> None:
    ramp = np.broadcast_to((np.arange(50) * 4)[:, None, None], (50, 30, 3)).astype(np.uint8)
    sample = StereoSample("ramp", ramp, ramp.copy())
    shifts = []
    for seed in range(20):
        result = T.RandomVerticalShift(1.0, 0.5)(sample, np.random.default_rng(seed))
        np.testing.assert_array_equal(result.left, ramp)
        shifts.append((result.right[20, 10, 0] - float(ramp[20, 10, 0])) / 4)
    assert max(np.abs(shifts)) <= 0.5 + 0.2  # gray levels are whole, so shifts are seen to a quarter pixel
    assert max(shifts) > 0.2
    assert min(shifts) < -0.2


def test_the_same_generator_gives_the_same_sample() -> None:
    compose = T.Compose(
        [
            T.RandomScaleCrop(20, 30, (-0.2, 0.4), 0.2),
            T.RandomVerticalFlip(),
            T.RandomVerticalShift(0.5, 0.5),
            T.RandomColor(0.5),
            T.RandomErase(0.5, 2, (3, 6)),
        ]
    )
    first, second, other = (compose(slanted(), np.random.default_rng((9, 0, i))) for i in (5, 5, 6))
    np.testing.assert_array_equal(first.right, second.right)
    np.testing.assert_array_equal(first.disparity, second.disparity)
    assert not np.array_equal(first.left, other.left)
