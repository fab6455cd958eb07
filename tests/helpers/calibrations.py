"""Two cameras of known geometry, their calibration in several formats, and what they see of known points."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from aanet.geometry.rectification import Calibration, RawCalibration, Rectification, stereo_rectify

SIZE = (640, 480)
RAW = RawCalibration(
    left_matrix=np.array([[420.0, 0, 322], [0, 421, 238], [0, 0, 1]]),
    left_distortion=np.array([-0.2, 0.05, 0.001, -0.0005, 0.0])[:, None],
    right_matrix=np.array([[425.0, 0, 318], [0, 424, 243], [0, 0, 1]]),
    right_distortion=np.array([-0.18, 0.04, -0.0004, 0.0008, 0.0])[:, None],
    rotation=cv2.Rodrigues(np.array([0.01, -0.02, 0.015]))[0],
    translation=np.array([-0.11, 0.002, 0.003])[:, None],
    width=SIZE[0],
    height=SIZE[1],
)
FISHEYE = dataclasses.replace(
    RAW,
    left_distortion=np.array([-0.1, 0.02, -0.003, 0.0005])[:, None],
    right_distortion=np.array([-0.12, 0.03, -0.002, 0.0004])[:, None],
    fisheye=True,
)
BASELINE_M = float(np.linalg.norm(RAW.translation))
POINTS = np.array([[0.1, 0.1, 1.5], [-0.4, -0.2, 2.5], [0.3, -0.3, 1.8], [-0.2, 0.3, 2.0]])

KITTI_RAW = """calib_time: 09-Jan-2012 13:57:47
corner_dist: 9.950000e-02
S_rect_02: 1.242000e+03 3.750000e+02
P_rect_02: 721.5377 0.0 6.095593e+02 4.485728e+01 0.0 721.5377 1.728540e+02 2.163791e-01 0 0 1 2.7e-03
S_rect_03: 1.242000e+03 3.750000e+02
P_rect_03: 721.5377 0.0 6.095593e+02 -3.395242e+02 0.0 721.5377 1.728540e+02 2.199936e+00 0 0 1 2.7e-03
"""
KITTI = """P0: 718.856 0 607.1928 0 0 718.856 185.2157 0 0 0 1 0
P1: 718.856 0 607.1928 -386.1448 0 718.856 185.2157 0 0 0 1 0
P2: 718.856 0 607.1928 45.38225 0 718.856 185.2157 -0.1130887 0 0 1 0.003779761
P3: 718.856 0 607.1928 -337.2877 0 718.856 185.2157 2.369057 0 0 1 0.004915215
"""
MIDDLEBURY = """cam0=[994.978 0 311.193; 0 994.978 254.877; 0 0 1]
cam1=[994.978 0 342.279; 0 994.978 254.877; 0 0 1]
doffs=31.086
baseline=193.001
width=741
height=497
ndisp=70
"""

ROS_FILE = """image_width: 640
image_height: 480
camera_name: {side}
camera_matrix:
  rows: 3
  cols: 3
  data: {K}
distortion_model: {model}
distortion_coefficients:
  rows: 1
  cols: {n}
  data: {D}
rectification_matrix:
  rows: 3
  cols: 3
  data: {R}
projection_matrix:
  rows: 3
  cols: 4
  data: {P}
"""
ROS1 = """header:
  seq: 17
  stamp:
    secs: 1386
    nsecs: 921
  frame_id: "/{side}"
height: 480
width: 640
distortion_model: "{model}"
D: {D}
K: {K}
R: {R}
P: {P}
binning_x: 0
binning_y: 0
roi:
  x_offset: 0
  y_offset: 0
  height: 0
  width: 0
  do_rectify: False
---
"""
ROS2 = """header:
  stamp:
    sec: 12
    nanosec: 5
  frame_id: {side}
height: 480
width: 640
distortion_model: {model}
d:{D}
k:{K}
r:{R}
p:{P}
binning_x: 0
binning_y: 0
roi:
  x_offset: 0
  y_offset: 0
  height: 0
  width: 0
  do_rectify: false
---
"""
SYNTAXES = {"file": ROS_FILE, "ROS 1": ROS1, "ROS 2": ROS2}


def storage(entries: dict[str, Any], suffix: str = ".yml") -> bytes:
    """An OpenCV FileStorage."""
    file = cv2.FileStorage(suffix, cv2.FILE_STORAGE_WRITE | cv2.FILE_STORAGE_MEMORY)
    for key, value in entries.items():
        file.write(key, value)
    return file.releaseAndGetString().encode()


def stereo_entries(raw: RawCalibration = RAW, units_per_meter: float = 1.0) -> dict[str, Any]:
    """What OpenCV's sample writes: intrinsics, extrinsics and the rectification."""
    rectification = rectify(raw)
    left, right = rectification.left_projection.copy(), rectification.right_projection.copy()
    right[0, 3] *= units_per_meter
    return {
        "M1": raw.left_matrix,
        "D1": raw.left_distortion,
        "M2": raw.right_matrix,
        "D2": raw.right_distortion,
        "R": raw.rotation,
        "T": raw.translation * units_per_meter,
        "R1": rectification.left_rotation,
        "R2": rectification.right_rotation,
        "P1": left,
        "P2": right,
        "Q": np.eye(4),
    }


def put_opencv_sample(folder: Path, units_per_meter: float = 1.0) -> list[object]:
    """Write the two files of OpenCV's sample, without an image size; return the options that name them."""
    entries = stereo_entries(RAW, units_per_meter)
    intrinsics = {key: entries.pop(key) for key in ("M1", "D1", "M2", "D2")}
    (folder / "intrinsics.yml").write_bytes(storage(intrinsics))
    (folder / "extrinsics.yml").write_bytes(storage(entries))
    return ["--calib", folder / "intrinsics.yml", "--calib-right", folder / "extrinsics.yml"]


def rectify(raw: RawCalibration) -> Rectification:
    """The rotations and projections that a program with OpenCV computes."""
    return stereo_rectify(raw)


def camera_info(raw: RawCalibration = RAW, syntax: str = "file", scale: float = 1.0) -> tuple[str, str]:
    """The files of both cameras; `scale` is that of the lengths."""
    given = rectify(raw)
    projection = given.right_projection * np.array([1, 1, 1, scale])
    lenses = {
        "left": (raw.left_matrix, raw.left_distortion, given.left_rotation, given.left_projection),
        "right": (raw.right_matrix, raw.right_distortion, given.right_rotation, projection),
    }
    texts = []
    for side, lens in lenses.items():
        K, D, R, P = (_listed(values, syntax) for values in lens)
        model = "equidistant" if raw.fisheye else "plumb_bob"
        values = {"side": side, "model": model, "n": lens[1].size, "K": K, "D": D, "R": R, "P": P}
        texts.append(SYNTAXES[syntax].format(**values))
    return texts[0], texts[1]


def _listed(values: np.ndarray, syntax: str) -> str:
    numbers = [repr(float(value)) for value in values.ravel()]
    return "".join(f"\n- {number}" for number in numbers) if syntax == "ROS 2" else f"[{', '.join(numbers)}]"


def photograph_wall(raw: RawCalibration, depth_m: float) -> list[Any]:
    """Raw images, uint8 [H, W], of a textured wall at a distance of `depth_m` in front of the left camera."""
    texture = np.random.default_rng(5).integers(0, 256, (400, 600), dtype=np.uint8)
    texels_per_meter = 100 / depth_m * 2
    pixels = np.stack(np.meshgrid(*map(np.arange, SIZE)), -1).reshape(-1, 1, 2).astype(np.float64)
    undistort: Any = cv2.fisheye.undistortPoints if raw.fisheye else cv2.undistortPoints
    images = []
    for matrix, distortion, rotation, translation in (
        (raw.left_matrix, raw.left_distortion, np.eye(3), np.zeros((3, 1))),
        (raw.right_matrix, raw.right_distortion, raw.rotation, raw.translation),
    ):
        rays = np.hstack([undistort(pixels, matrix, distortion).reshape(-1, 2), np.ones((len(pixels), 1))])
        rays, center = rays @ rotation, -(rotation.T @ translation).ravel()  # in the frame of the left camera
        points = center + rays * ((depth_m - center[2]) / rays[:, 2:])
        at = (points[:, :2] * texels_per_meter + np.array([300, 200])).astype(np.float32)
        at = at.reshape(SIZE[1], SIZE[0], 2)
        images.append(cv2.remap(texture, at, None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))
    return images


def points_seen_raw(raw: RawCalibration) -> tuple[Any, Any]:
    """Pixels of `POINTS` in the raw images of both cameras, [N, 2] each."""
    turn = cv2.Rodrigues(raw.rotation)[0]
    poses = ((np.zeros((3, 1)), np.zeros((3, 1))), (turn, raw.translation))
    lenses = ((raw.left_matrix, raw.left_distortion), (raw.right_matrix, raw.right_distortion))
    points = POINTS[:, None]
    left, right = (
        cv2.fisheye.projectPoints(points, *pose, *lens)[0]
        if raw.fisheye
        else cv2.projectPoints(points, *pose, *lens)[0]
        for pose, lens in zip(poses, lenses, strict=True)
    )
    return left.reshape(-1, 2), right.reshape(-1, 2)


def assert_rectifies(calibration: Calibration, raw: RawCalibration) -> None:
    """Marks drawn where raw cameras see points in space are found by the rectified geometry."""
    sized = calibration.for_size(*SIZE)
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    for point, *seen in zip(POINTS, *points_seen_raw(raw), strict=True):
        pair = [(255 * np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 18)).astype(np.float32) for at in seen]
        marks = [
            ((image * x).sum() / image.sum(), (image * y).sum() / image.sum())
            for image in calibration.rectify(*pair)
        ]
        assert marks[0][1] == pytest.approx(marks[1][1], abs=0.15)
        disparity = np.full((SIZE[1], SIZE[0]), marks[0][0] - marks[1][0], np.float32)
        found = sized.camera.points(disparity)[round(marks[0][1]), round(marks[0][0])]
        assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(point), rel=0.005)
