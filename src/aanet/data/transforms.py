"""Augmentation of stereo pairs: what the paper used, and what later training recipes added.

Every transform maps a sample to a sample and draws from the generator it is given, so that a sample's
augmentation depends on its seed alone and not on the worker that loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import StereoSample
from aanet.typing import FloatMap, Image, Mask

Transform = Callable[[StereoSample, np.random.Generator], StereoSample]
FloatImage = NDArray[np.float32]  # [H, W, 3] in 0..1

# The gray of a color, as JPEG and ITU-R BT.601 weigh it.
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
# Two samples of one smooth surface lie closer than this in disparity; farther apart they are an edge.
SAME_SURFACE_PX = 1.0


@dataclass(frozen=True)
class Compose:
    """Apply the transforms one after another."""

    transforms: Sequence[Transform]

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """The sample after every transform, in order."""
        for transform in self.transforms:
            sample = transform(sample, rng)
        return sample


@dataclass(frozen=True)
class RandomCrop:
    """Cut the same random window from both views; an image smaller than it is first padded."""

    height: int
    width: int

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """A window of the wanted size."""
        sample = pad_to(sample, self.height, self.width)
        height, width = sample.left.shape[:2]
        y = int(rng.integers(height - self.height + 1))
        x = int(rng.integers(width - self.width + 1))
        return crop(sample, y, x, self.height, self.width)


@dataclass(frozen=True)
class RandomScaleCrop:
    """Cut a random window of another size and resize it to the wanted one: scale, stretch and crop at once.

    `log2_scale` bounds the zoom (powers of two) and `log2_stretch` the extra zoom of the width alone.
    A window never exceeds the image, so an image at least as large as the crop is never padded.
    """

    height: int
    width: int
    log2_scale: tuple[float, float]
    log2_stretch: float

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """A window of the wanted size, zoomed; disparities are multiplied by the zoom of the width."""
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
    """Turn both views upside down; disparity keeps its sign and value."""

    probability: float = 0.5

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """The sample, flipped with the given probability."""
        if rng.random() >= self.probability:
            return sample
        return _map_planes(sample, lambda plane: np.ascontiguousarray(plane[::-1]))


@dataclass(frozen=True)
class RandomVerticalShift:
    """Move the right view up or down as an imperfect rectification does: all alike, and more to one side.

    The second is a rotation without its horizontal part, which would change the disparity.
    """

    probability: float
    max_shift_px: float
    max_rotation_deg: float = 0.0

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """The sample with its right view shifted; the truth stays, on the left view's rows."""
        if rng.random() >= self.probability:
            return sample
        shift = rng.uniform(-self.max_shift_px, self.max_shift_px)
        slope = np.tan(np.deg2rad(rng.uniform(-1, 1) * self.max_rotation_deg))
        height, width = sample.right.shape[:2]
        matrix = np.array([[1, 0, 0], [slope, 1, shift - slope * (width - 1) / 2]], np.float64)
        right = cv2.warpAffine(sample.right, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
        return replace(sample, right=np.asarray(right, np.uint8))


@dataclass(frozen=True)
class RandomColor:
    """The paper's color augmentation; with probability `asymmetric` each view draws its own.

    With probability ½ one of brightness, contrast, gamma, hue and saturation, otherwise all of them in
    random order; each is then applied with probability ½.
    """

    asymmetric: float = 0.0

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """The sample with changed colors; the truth stays."""
        change = draw_color_change(rng)
        other = draw_color_change(rng) if rng.random() < self.asymmetric else change
        return replace(sample, left=change(sample.left), right=other(sample.right))


@dataclass(frozen=True)
class RandomErase:
    """Replace patches of the right view, so that the network learns to fill what has no match.

    A patch takes the mean color of the view or, with probability `other`, what another place of it shows.
    """

    probability: float
    max_patches: int = 2
    size_px: tuple[int, int] = (40, 90)
    other: float = 0.0

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """The sample with patches of its right view erased; the truth stays."""
        if rng.random() >= self.probability:
            return sample
        right = sample.right.copy()
        height, width = right.shape[:2]
        mean = right.reshape(-1, 3).mean(axis=0).round().astype(np.uint8)
        for _ in range(int(rng.integers(1, self.max_patches + 1))):
            y, x = int(rng.integers(height)), int(rng.integers(width))
            patch_height, patch_width = rng.integers(self.size_px[0], self.size_px[1] + 1, size=2)
            patch = right[y : y + int(patch_height), x : x + int(patch_width)]
            patch[...] = mean
            if rng.random() < self.other:
                from_y = int(rng.integers(height - patch.shape[0] + 1))
                from_x = int(rng.integers(width - patch.shape[1] + 1))
                patch[...] = sample.right[from_y:, from_x:][: patch.shape[0], : patch.shape[1]]
        return replace(sample, right=right)


def draw_color_change(rng: np.random.Generator) -> Callable[[Image], Image]:
    """Draw one color augmentation of the paper; every image given to the result is changed alike."""
    changes: list[Callable[[FloatImage], FloatImage]] = [
        _brightness(rng.uniform(0.5, 2.0)),
        _contrast(rng.uniform(0.8, 1.2)),
        _gamma(rng.uniform(0.7, 1.5)),
        _hue(rng.uniform(-0.1, 0.1)),
        _saturation(rng.uniform(0.8, 1.2)),
    ]
    single = rng.random() < 0.5
    order = rng.permutation(len(changes))[: 1 if single else None]
    chosen = [changes[i] for i in order if rng.random() < 0.5]

    def apply(image: Image) -> Image:
        if not chosen:
            return image
        values = image.astype(np.float32) / np.float32(255)
        for change in chosen:
            values = np.clip(change(values), 0, 1)
        return np.asarray(np.round(values * 255), np.uint8)

    return apply


def _brightness(factor: float) -> Callable[[FloatImage], FloatImage]:
    return lambda image: image * np.float32(factor)


def _contrast(factor: float) -> Callable[[FloatImage], FloatImage]:
    def change(image: FloatImage) -> FloatImage:
        gray = np.float32((image @ LUMA).mean())
        return np.asarray((image - gray) * np.float32(factor) + gray, np.float32)

    return change


def _gamma(exponent: float) -> Callable[[FloatImage], FloatImage]:
    return lambda image: cv2.pow(image, exponent).astype(np.float32, copy=False)


def _hue(turn: float) -> Callable[[FloatImage], FloatImage]:
    def change(image: FloatImage) -> FloatImage:
        hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)  # hue in degrees
        hsv[..., 0] = (hsv[..., 0] + np.float32(360 * turn)) % 360
        return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.float32)

    return change


def _saturation(factor: float) -> Callable[[FloatImage], FloatImage]:
    def change(image: FloatImage) -> FloatImage:
        gray = (image @ LUMA)[..., None]
        return np.asarray((image - gray) * np.float32(factor) + gray, np.float32)

    return change


def crop(sample: StereoSample, y: int, x: int, height: int, width: int) -> StereoSample:
    """The window of `height` × `width` whose upper left corner is (y, x), cut from every map."""
    return _map_planes(sample, lambda plane: plane[y : y + height, x : x + width])


def pad_to(sample: StereoSample, height: int, width: int) -> StereoSample:
    """Repeat the border at the top and on the right up to a minimum size; the truth there is unknown."""
    top = max(height - sample.left.shape[0], 0)
    right = max(width - sample.left.shape[1], 0)
    if not top and not right:
        return sample

    def pad(plane: NDArray[Any]) -> NDArray[Any]:
        edges = ((top, 0), (0, right)) + ((0, 0),) * (plane.ndim - 2)
        return np.pad(plane, edges, mode="edge" if plane.ndim == 3 else "constant")

    disparity, valid = _truth(sample)
    return _map_planes(replace(sample, disparity=disparity, valid=valid), pad)


def resize(sample: StereoSample, height: int, width: int) -> StereoSample:
    """Resize both views and every map; disparities are multiplied by the factor of the width."""
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
        return np.asarray(resize_disparity(plane, known, height, width) * np.float32(factor), np.float32)

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


def resize_disparity(disparity: FloatMap, known: Mask, height: int, width: int) -> FloatMap:
    """Sample a disparity map on another grid without inventing surfaces: the values are not scaled.

    Bilinear inside a surface, so that slants stay exact; nearest neighbor at edges and beside unknown
    pixels, where an average would lie between two surfaces.
    """
    near = _nearest(disparity, height, width)
    linear = cv2.resize(disparity, (width, height), interpolation=cv2.INTER_LINEAR)
    all_known = cv2.resize(known.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR) > 0.999
    inside = all_known & (np.abs(linear - near) < SAME_SURFACE_PX)
    return np.where(inside, linear, near).astype(np.float32)


def _nearest(plane: FloatMap, height: int, width: int) -> FloatMap:
    return np.asarray(cv2.resize(plane, (width, height), interpolation=cv2.INTER_NEAREST_EXACT), np.float32)


def _truth(sample: StereoSample) -> tuple[FloatMap | None, Mask | None]:
    """The disparity, and where it is known: made explicit before padding adds pixels that are not."""
    if sample.disparity is None or sample.valid is not None:
        return sample.disparity, sample.valid
    return sample.disparity, np.ones(sample.disparity.shape, bool)


def _map_planes(sample: StereoSample, change: Callable[[NDArray[Any]], NDArray[Any]]) -> StereoSample:
    """Apply one geometric change to every image and map; the right view's own truth is dropped."""

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
