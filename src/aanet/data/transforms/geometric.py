"""Geometric transforms: crops, resizing, flips and vertical misalignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import StereoSample
from aanet.errors import InputError
from aanet.typing import FloatMap, Image, Mask

# Disparities of one smooth surface differ by less than this between two samplings; a larger jump is an edge.
SAME_SURFACE_PX = 1.0
# A crop is at most this many times as high and as wide as an image: the rest of it is padding, in which
# nothing is learned. KITTI's crops in the paper are 1.04 times as high as its lowest images.
MAX_PADDED = 2.0


@dataclass(frozen=True)
class RandomCrop:
    """Crop the same random window from both views; smaller images are padded first."""

    height: int
    width: int

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """Return a random window of the given size."""
        sample = pad_to(sample, self.height, self.width)
        height, width = sample.left.shape[:2]
        y = int(rng.integers(height - self.height + 1))
        x = int(rng.integers(width - self.width + 1))
        return crop(sample, y, x, self.height, self.width)


@dataclass(frozen=True)
class RandomScaleCrop:
    """Crop a random window and resize it to the given size: scale, stretch and crop in one step.

    `log2_scale` is the range of the zoom (log2) and `log2_stretch` limits the additional zoom of the width.
    The window never exceeds the image, so an image at least as large as the crop is never padded.
    """

    height: int
    width: int
    log2_scale: tuple[float, float]
    log2_stretch: float

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """Return a zoomed window of the given size; disparities are multiplied by the zoom of the width."""
        zoom_y = 2.0 ** rng.uniform(*self.log2_scale)
        zoom_x = zoom_y * 2.0 ** rng.uniform(-self.log2_stretch, self.log2_stretch)
        sample = pad_to(sample, self.height, self.width)
        image_height, image_width = sample.left.shape[:2]
        height = int(np.clip(round(self.height / zoom_y), 1, image_height))
        width = int(np.clip(round(self.width / zoom_x), 1, image_width))
        window = RandomCrop(height, width)(sample, rng)
        return resize(window, self.height, self.width)


@dataclass(frozen=True)
class RandomVerticalFlip:
    """Flip both views vertically; disparities keep their values."""

    probability: float = 0.5

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """Return the sample, flipped with the given probability."""
        if rng.random() >= self.probability:
            return sample
        return _map_planes(sample, lambda plane: np.ascontiguousarray(plane[::-1]))


@dataclass(frozen=True)
class RandomVerticalShift:
    """Shift the right view vertically, as imperfect rectification does: a constant shift and a rotation.

    The rotation is reduced to its vertical component, because the horizontal one would change the disparity.
    """

    probability: float
    max_shift_px: float
    max_rotation_deg: float = 0.0

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """Return the sample with its right view shifted; the ground truth of the left view is unchanged."""
        if rng.random() >= self.probability:
            return sample
        shift = rng.uniform(-self.max_shift_px, self.max_shift_px)
        slope = np.tan(np.deg2rad(rng.uniform(-1, 1) * self.max_rotation_deg))
        height, width = sample.right.shape[:2]
        matrix = np.array([[1, 0, 0], [slope, 1, shift - slope * (width - 1) / 2]], np.float64)
        right = cv2.warpAffine(sample.right, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
        return replace(sample, right=np.asarray(right, np.uint8))


def crop(sample: StereoSample, y: int, x: int, height: int, width: int) -> StereoSample:
    """Crop every image and map to the `height` × `width` window with the upper left corner (y, x)."""
    return _map_planes(sample, lambda plane: plane[y : y + height, x : x + width])


def require_size(name: str, size: tuple[int, ...], crop: tuple[int, int]) -> None:
    """Raise an error if an image is so small that most of a crop would be padding."""
    (height, width), (crop_height, crop_width) = size[:2], crop
    if crop_height > MAX_PADDED * height or crop_width > MAX_PADDED * width:
        raise InputError(
            f"{name} has {height}×{width} pixels, so that most of a crop of {crop_height}×{crop_width} would "
            "be padding; set a smaller 'crop' in the [[stage]] of the recipe."
        )


def pad_to(sample: StereoSample, height: int, width: int) -> StereoSample:
    """Pad the top and the right by replication up to a minimum size; ground truth is unknown there."""
    top = max(height - sample.left.shape[0], 0)
    right = max(width - sample.left.shape[1], 0)
    if not top and not right:
        return sample
    require_size(sample.name, sample.left.shape, (height, width))

    def pad(plane: NDArray[Any]) -> NDArray[Any]:
        edges = ((top, 0), (0, right)) + ((0, 0),) * (plane.ndim - 2)
        return np.pad(plane, edges, mode="edge" if plane.ndim == 3 else "constant")

    if sample.disparity is not None and sample.valid is None:
        # Everything is known except the padding.
        sample = replace(sample, valid=np.ones(sample.disparity.shape, bool))
    return _map_planes(sample, pad)


def resize(sample: StereoSample, height: int, width: int) -> StereoSample:
    """Resize every image and map; disparities are multiplied by the scale factor of the width."""
    old_height, old_width = sample.left.shape[:2]
    if (old_height, old_width) == (height, width):
        return sample
    factor = width / old_width
    smaller = height * width < old_height * old_width
    filtering = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR

    def image(plane: Image) -> Image:
        return np.asarray(cv2.resize(plane, (width, height), interpolation=filtering), np.uint8)

    def mask(plane: Mask | None) -> Mask | None:
        return None if plane is None else _nearest(plane.astype(np.float32), height, width) > 0

    def disparity(plane: FloatMap | None, known: Mask | None) -> FloatMap | None:
        if plane is None:
            return None
        known = plane > 0 if known is None else known
        return np.asarray(resample_disparity(plane, known, height, width) * np.float32(factor), np.float32)

    return replace(
        sample,
        left=image(sample.left),
        right=image(sample.right),
        disparity=disparity(sample.disparity, sample.valid),
        valid=mask(sample.valid),
        visible=mask(sample.visible),
        foreground=mask(sample.foreground),
        pseudo_disparity=disparity(sample.pseudo_disparity, None),
        right_disparity=None,
        right_visible=None,
    )


def resample_disparity(disparity: FloatMap, known: Mask, height: int, width: int) -> FloatMap:
    """Resample a disparity map on another grid without scaling its values.

    Bilinear inside a surface, so that slanted planes stay exact; nearest neighbor at edges and near unknown
    pixels, where an average would lie between two surfaces.
    """
    near = _nearest(disparity, height, width)
    linear = cv2.resize(disparity, (width, height), interpolation=cv2.INTER_LINEAR)
    all_known = cv2.resize(known.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR) > 0.999
    inside = all_known & (np.abs(linear - near) < SAME_SURFACE_PX)
    return np.where(inside, linear, near).astype(np.float32)


def _nearest(plane: FloatMap, height: int, width: int) -> FloatMap:
    return np.asarray(cv2.resize(plane, (width, height), interpolation=cv2.INTER_NEAREST_EXACT), np.float32)


def _map_planes(sample: StereoSample, change: Callable[[NDArray[Any]], NDArray[Any]]) -> StereoSample:
    """Apply a function to every image and map; the ground truth of the right view is dropped."""

    def optional(plane: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if plane is None else change(plane)

    return StereoSample(
        name=sample.name,
        left=change(sample.left),
        right=change(sample.right),
        disparity=optional(sample.disparity),
        valid=optional(sample.valid),
        visible=optional(sample.visible),
        foreground=optional(sample.foreground),
        pseudo_disparity=optional(sample.pseudo_disparity),
    )
