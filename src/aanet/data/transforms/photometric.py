"""Photometric transforms: colors and erased patches; the ground truth is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import StereoSample
from aanet.typing import Image

FloatImage = NDArray[np.float32]  # [H, W, 3] in 0..1

LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601, as in JPEG


@dataclass(frozen=True)
class RandomColor:
    """The paper's color augmentation; with probability `asymmetric`, independent for the two views.

    With probability ½ one of brightness, contrast, gamma, hue and saturation is selected, otherwise all of
    them in random order; each selected one is applied with probability ½.
    """

    asymmetric: float = 0.0

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """Return the sample with changed colors."""
        change = draw_color_change(rng)
        other = draw_color_change(rng) if rng.random() < self.asymmetric else change
        return replace(sample, left=change(sample.left), right=other(sample.right))


@dataclass(frozen=True)
class RandomErase:
    """Replace patches of the right view, so that the network learns to fill regions without a match.

    A patch is filled with the view's mean color or, with probability `other`, with a copy of another region.
    """

    probability: float
    max_patches: int = 2
    size_px: tuple[int, int] = (40, 90)
    other: float = 0.0

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """Return the sample with patches of its right view replaced."""
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
    """Draw a random color change; the returned function applies the same change to every image."""
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
