"""Resizing averages areas, interpolates between pixels, and keeps what has the size."""

from __future__ import annotations

import numpy as np

from aanet.inference.resizing import resize_planes

PLANES = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)


def test_a_smaller_size_is_the_mean_of_areas() -> None:
    expected = PLANES.reshape(2, 3, 2, 2, 3, 2).mean(axis=(3, 5))
    assert np.allclose(resize_planes(PLANES, (2, 3)), expected)


def test_a_larger_size_is_interpolated_between_the_centers_of_pixels() -> None:
    doubled = resize_planes(PLANES[:, :, :, :2], (4, 4))
    left, right = PLANES[..., 0], PLANES[..., 1]
    expected = np.stack([left, 0.75 * left + 0.25 * right, 0.25 * left + 0.75 * right, right], axis=-1)
    assert np.allclose(doubled, expected)


def test_a_plane_that_grows_in_one_direction_is_interpolated() -> None:
    """Areas of pixels would repeat rows instead."""
    column = np.array([[0.0], [4.0]], np.float32)
    assert np.allclose(resize_planes(column, (4, 1))[:, 0], [0, 1, 3, 4])


def test_planes_of_the_size_are_returned_as_they_are() -> None:
    assert resize_planes(PLANES, (4, 6)) is PLANES
