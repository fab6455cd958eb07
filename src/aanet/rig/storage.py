"""The file of a calibrated rig: OpenCV's FileStorage, which OpenCV and `aanet.load_calibration` read."""

from __future__ import annotations

import cv2
import numpy as np

from aanet.geometry.rectification import Matrix, Rectification
from aanet.rig.solve import Solution

DISTORTION_MODELS = {"pinhole": "plumb_bob", "fisheye": "fisheye"}


def rig_yaml(solution: Solution, size: tuple[int, int]) -> str:
    """Return the calibration as YAML, with lengths in meters."""
    storage = cv2.FileStorage("rig.yml", cv2.FILE_STORAGE_WRITE | cv2.FILE_STORAGE_MEMORY)
    storage.writeComment("A stereo rig: T, P1, P2 and Q are in meters, everything else is in pixels.")
    storage.write("image_width", size[0])
    storage.write("image_height", size[1])
    storage.write("distortion_model", DISTORTION_MODELS[solution.lenses[0].model])
    storage.write("units", "meters")
    for number, lens in enumerate(solution.lenses, start=1):
        storage.write(f"K{number}", lens.matrix)
        storage.write(f"D{number}", lens.distortion)
    storage.write("R", solution.rotation)
    storage.write("T", solution.translation)
    rectification = solution.rectification
    storage.write("R1", rectification.left_rotation)
    storage.write("R2", rectification.right_rotation)
    storage.write("P1", rectification.left_projection)
    storage.write("P2", rectification.right_projection)
    storage.write("Q", reprojection(rectification))
    return storage.releaseAndGetString()


def reprojection(rectification: Rectification) -> Matrix:
    """Return OpenCV's Q [4, 4], which maps (x, y, disparity, 1) to homogeneous coordinates in meters."""
    left, right = rectification.left_projection, rectification.right_projection
    focal, cx, cy = left[0, 0], left[0, 2], left[1, 2]
    shift = right[0, 3] / focal
    return np.array(
        [[1, 0, 0, -cx], [0, 1, 0, -cy], [0, 0, 0, focal], [0, 0, -1 / shift, (cx - right[0, 2]) / shift]]
    )
