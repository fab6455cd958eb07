"""Files of the site that need predictions: the 3D view of Motorcycle, and the pictures of the networks."""

from __future__ import annotations

import io
import json
from functools import cache

import cv2
import numpy as np

import aanet
from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
from aanet.io.images import encode_image
from aanet.models.weights import files
from aanet.result import StereoResult
from aanet.viz import colorize_disparity, colorize_error, value_range
from aanet.viz.color import turbo
from docs_site import networks

FOLDER = "assets/motorcycle"
_PICTURE_WIDTH = 480  # of each of the three panels


@cache
def predict(weights: str) -> StereoResult:
    """The prediction of bundled weights, made once per build."""
    pair = motorcycle()
    return aanet.StereoMatcher(weights)(pair.left, pair.right, calibration=MOTORCYCLE_CAMERA)


def cloud_files() -> dict[str, bytes]:
    """What the 3D view reads: the left image, maps of disparity and confidence, the camera and the colors."""
    result = predict(files.DEFAULT)
    # 16 bits as in KITTI's files, 0 where unknown; 8 bits of confidence: a third of the bytes of floats.
    disparity = np.nan_to_num(np.round(256 * result.disparity)).astype("<u2")
    arrays = io.BytesIO()
    np.savez(
        arrays,
        disparity=disparity.view(np.uint8).reshape(*disparity.shape, 2),
        confidence=np.round(255 * result.confidence).astype(np.uint8),
    )
    facts = {
        "camera": json.loads(MOTORCYCLE_CAMERA.to_json()),
        "ramp": turbo().tolist(),
        "model": result.model,
    }
    return {
        f"{FOLDER}/left.jpg": encode_image(result.left, ".jpg"),
        f"{FOLDER}/maps.npz": arrays.getvalue(),
        f"{FOLDER}/facts.json": json.dumps(facts).encode(),
    }


def network_pictures() -> dict[str, bytes]:
    """Left image, disparity and error of each of the bundled weights."""
    pair = motorcycle()
    assert pair.disparity is not None
    assert pair.valid is not None
    low, high = value_range(pair.disparity[pair.valid])
    pictures = {}
    for weights in files.bundled_names():
        disparity = predict(weights).disparity
        errors = colorize_error(disparity, pair.disparity, pair.valid)
        panels = [pair.left, colorize_disparity(disparity, low, high), errors]
        row = np.hstack(panels)
        size = (3 * _PICTURE_WIDTH, round(3 * _PICTURE_WIDTH * row.shape[0] / row.shape[1]))
        small = cv2.resize(row, size, interpolation=cv2.INTER_AREA)
        pictures[networks.picture(weights)] = encode_image(small, ".jpg")
    return pictures
