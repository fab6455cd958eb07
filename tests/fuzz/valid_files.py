"""Small valid files of every kind that is read without torch: what the mutations start from."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image

from aanet.io.depth import encode_depth
from aanet.io.disparity import encode_disparity
from aanet.io.images import encode_image
from aanet.io.points import encode_ply

KITTI = """P0: 718.856 0 607.1928 0 0 718.856 185.2157 0 0 0 1 0
P2: 718.856 0 607.1928 45.38225 0 718.856 185.2157 -0.1130887 0 0 1 0.003779761
P3: 718.856 0 607.1928 -337.2877 0 718.856 185.2157 2.369057 0 0 1 0.004915215
"""
KITTI_RAW = """calib_time: 09-Jan-2012 13:57:47
S_rect_02: 6.400000e+02 4.800000e+02
P_rect_02: 721.5377 0.0 6.095593e+02 4.485728e+01 0.0 721.5377 1.728540e+02 2.163791e-01 0 0 1 2.7e-03
P_rect_03: 721.5377 0.0 6.095593e+02 -3.395242e+02 0.0 721.5377 1.728540e+02 2.199936e+00 0 0 1 2.7e-03
"""
MIDDLEBURY = """cam0=[994.978 0 311.193; 0 994.978 254.877; 0 0 1]
cam1=[994.978 0 342.279; 0 994.978 254.877; 0 0 1]
doffs=31.086
baseline=193.001
width=640
height=480
ndisp=70
"""
ROS = """image_width: 640
image_height: 480
camera_name: left
distortion_model: plumb_bob
projection_matrix:
  rows: 3
  cols: 4
  data: [400.0, 0.0, 320.5, 0.0, 0.0, 400.0, 239.5, 0.0, 0.0, 0.0, 1.0, 0.0]
"""
ROS_RIGHT = ROS.replace("320.5, 0.0", "322.5, -48.0").replace("left", "right")
KALIBR = """cam0:
  camera_model: pinhole
  intrinsics: [400.0, 400.0, 320.0, 240.0]
  distortion_model: radtan
  distortion_coeffs: [0.1, 0.0, 0.0, 0.0]
cam1:
  camera_model: pinhole
  intrinsics: [400.0, 400.0, 320.0, 240.0]
  distortion_model: radtan
  distortion_coeffs: [0.1, 0.0, 0.0, 0.0]
  T_cn_cnm1: [[1, 0, 0, -0.1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
"""
CAMERA = """{"format": "aanet-stereo-camera", "fx": 400.5, "cx": 320.0, "cy": 240.0, "baseline_m": 0.12,
 "width": 640, "height": 480, "cx_right": 322.5, "fy": null}
"""
TABLE = 'left,right,disparity,mask\na.png,a.png,a.npy,\n"a.png", a.png,"",a.png\n'
RECIPE = """extends = "base.toml"
seed = 3

[network]
name = "aanet"
max_disparity = 48

[[data]]
name = "synthetic"
length = 40

[[stage]]
name = "first"
crop = [48, 96]
batch = 2
steps = 100
learning_rate = 1e-3
schedule = "milestones"
milestones = [40, 60]
factor = 0.5
loss = "pyramid"
"""


def image(channels: int = 3, dtype: type = np.uint8) -> np.ndarray:
    """A smooth image with some noise, 24×32."""
    rows, columns, channel = np.indices((24, 32, channels))
    noise = np.random.default_rng(0).integers(0, 9, rows.shape)
    values = (7 * rows + 3 * columns + 40 * channel + noise) % 256
    return np.squeeze((values * (257 if dtype is np.uint16 else 1)).astype(dtype))


def values() -> np.ndarray:
    """A map with an unknown value, 6×8."""
    found = np.linspace(1, 90, 48, dtype=np.float32).reshape(6, 8)
    found[2, 3] = np.nan
    return found


def images(suffix: str) -> list[bytes]:
    """Gray and color, with 16 bits and alpha where the format has them."""
    found = [encode_image(image(), suffix)]
    if suffix != ".ppm":
        found.append(encode_image(image(1), suffix))
    if suffix in (".png", ".tif"):
        found += [encode_image(image(1, np.uint16), suffix), encode_image(image(4), suffix)]
    return found


def pictures(kind: str, **options: Any) -> list[bytes]:
    """Images that OpenCV does not write: progressive JPEG, palettes, interlaced files."""
    file = io.BytesIO()
    picture = PIL.Image.fromarray(image())
    (picture.quantize(16) if kind == "GIF" else picture).save(file, kind, **options)
    return [file.getvalue()]


def palette_png() -> bytes:
    """A PNG with a palette and text."""
    file = io.BytesIO()
    PIL.Image.fromarray(image()).quantize(16).save(file, "PNG", dpi=(72, 72))
    return file.getvalue()


def disparities(suffix: str) -> list[bytes]:
    """A disparity map."""
    return [encode_disparity(values(), suffix)]


def depths(suffix: str) -> list[bytes]:
    """A depth map."""
    return [encode_depth(values(), suffix)]


def point_clouds() -> list[bytes]:
    """Some colored points."""
    points = np.random.default_rng(1).normal(size=(9, 3)).astype(np.float32)
    return [encode_ply(points, np.full((9, 3), 7, np.uint8))]


def storages(suffix: str) -> list[bytes]:
    """Raw and rectified calibrations as OpenCV writes them."""
    camera = np.array([[420.0, 0, 322], [0, 421, 238], [0, 0, 1]])
    lens = np.array([-0.2, 0.05, 0.001, -0.0005, 0.0])[:, None]
    projections = [np.array([[400.0, 0, 320, t], [0, 400, 240, 0], [0, 0, 1, 0]]) for t in (0.0, -48.0)]
    raw = {"M1": camera, "D1": lens, "M2": camera, "D2": lens, "R": np.eye(3)}
    raw |= {"T": np.array([[-0.11], [0.002], [0.003]]), "image_width": 640, "image_height": 480}
    return [_storage(raw, suffix), _storage({"P1": projections[0], "P2": projections[1]}, suffix)]


def _storage(entries: dict[str, Any], suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
        for key, value in entries.items():
            storage.write(key, value)
        storage.release()
        return path.read_bytes()


def videos() -> list[bytes]:
    """Three frames of a side-by-side video."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.avi"
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 24))
        for _ in range(3):
            writer.write(np.hstack([image(), image()]))
        writer.release()
        return [path.read_bytes()]


def matrices() -> list[bytes]:
    """The matrices of a stereo calibration as an NPZ file."""
    matrix = np.array([[400.0, 0, 320], [0, 400, 240], [0, 0, 1]])
    arrays = {"K1": matrix, "D1": np.zeros(5), "K2": matrix, "D2": np.zeros(5)}
    file = io.BytesIO()
    np.savez(file, **arrays, R=np.eye(3), T=np.array([[-0.1], [0], [0]]))
    return [file.getvalue()]


NETWORK_SPEC = """
name = "a network"
max_disparity = 128
license = "MIT"

[[input]]
name = "pair"
content = "left+right"
scale = 0.5

[image]
layout = "NHWC"
color = "RGB"
range = [-1.0, 1.0]
mean = [0.5, 0.5, 0.5]
std = [0.25]

[size]
multiple = 32
minimum = 64

[output]
name = "disparity"
channel = 1
sign = "negative"
scale = 4.0
unit = "pixel"
resolution = 0.25
"""
NETWORK_XML = '<?xml version="1.0"?>\n<net name="a" version="11"><layer type="Const"/></net>\n'
