"""Read the files of a pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aanet.io.disparity import read_disparity
from aanet.io.images import as_rgb8, read_image
from aanet.typing import FloatMap, Image, Mask


def read_rgb(path: Path) -> Image:
    """Read an image as uint8 RGB."""
    return as_rgb8(read_image(path))


def read_mask(path: Path) -> Image:
    """Read an 8-bit mask [H, W]; the first channel of a color image."""
    return read_rgb(path)[:, :, 0]


def read_truth(path: Path, scale: float | None = None) -> tuple[FloatMap, Mask]:
    """Read a disparity map; returns it with 0 where it is unknown, and the mask of known pixels."""
    return split_known(read_disparity(path, scale=scale))


def split_known(disparity: FloatMap) -> tuple[FloatMap, Mask]:
    """Return the disparity with 0 where it is unknown, and the mask of known pixels."""
    valid = np.isfinite(disparity) & (disparity > 0)
    return np.where(valid, disparity, np.float32(0)), valid
