"""Parts of the Motorcycle pair, encoded as a client of the server would send them."""

from __future__ import annotations

import numpy as np

from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
from aanet.io.images import encode_image
from aanet.typing import Image


def png(image: Image) -> bytes:
    return encode_image(image, ".png")


def whole() -> dict[str, bytes]:
    """The pair with its camera."""
    sample = motorcycle()
    return {
        "left": png(sample.left),
        "right": png(sample.right),
        "calib": MOTORCYCLE_CAMERA.to_json().encode(),
    }


def window(x: int, y: int, width: int, height: int) -> dict[str, bytes]:
    """A window of it, with the camera of the window."""
    sample = motorcycle()
    inside = np.s_[y : y + height, x : x + width]
    camera = MOTORCYCLE_CAMERA.cropped(x, y, width, height)
    return {
        "left": png(np.ascontiguousarray(sample.left[inside])),
        "right": png(np.ascontiguousarray(sample.right[inside])),
        "calib": camera.to_json().encode(),
    }
