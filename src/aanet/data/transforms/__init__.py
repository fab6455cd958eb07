"""Augmentation of stereo pairs: the paper's transforms, and those of later training recipes.

Every transform maps a sample to a sample and draws from the generator it is given, so that a sample's
augmentation depends on its seed alone and not on the worker that loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aanet.data.sample import StereoSample
from aanet.data.transforms.geometric import (
    RandomCrop,
    RandomScaleCrop,
    RandomVerticalFlip,
    RandomVerticalShift,
    require_size,
)
from aanet.data.transforms.photometric import RandomColor, RandomErase

__all__ = [
    "Compose",
    "RandomColor",
    "RandomCrop",
    "RandomErase",
    "RandomScaleCrop",
    "RandomVerticalFlip",
    "RandomVerticalShift",
    "Transform",
    "require_size",
]

Transform = Callable[[StereoSample, np.random.Generator], StereoSample]


@dataclass(frozen=True)
class Compose:
    """Apply transforms one after another."""

    transforms: Sequence[Transform]

    def __call__(self, sample: StereoSample, rng: np.random.Generator) -> StereoSample:
        """Return the transformed sample."""
        for transform in self.transforms:
            sample = transform(sample, rng)
        return sample
