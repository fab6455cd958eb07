"""Resizing of images and maps before and after a network."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.typing import FloatMap


def resize_planes(planes: FloatMap, size: tuple[int, int]) -> FloatMap:
    """Resize [..., h, w] to [..., H, W]: by areas to a smaller size, bilinearly to a larger one."""
    height, width = planes.shape[-2:]
    if (height, width) == size:
        return planes
    method = cv2.INTER_AREA if size[0] <= height and size[1] <= width else cv2.INTER_LINEAR
    flat = np.ascontiguousarray(planes.reshape(-1, height, width))
    resized = [cv2.resize(plane, (size[1], size[0]), interpolation=method) for plane in flat]
    return np.stack(resized).reshape(*planes.shape[:-2], *size).astype(np.float32)
