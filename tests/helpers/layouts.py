"""Tiny datasets in each benchmark's own layout, written with OpenCV and NumPy rather than with our writers.

The true disparity of every pair is `truth()`: a slope with a hole, which each layout marks in its own way.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

HEIGHT, WIDTH = 24, 40


def truth(height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Disparity 2 to 6 px in steps that 1/256 px holds exactly; NaN in the upper left corner."""
    disparity = np.tile(np.linspace(2, 6, width, dtype=np.float32), (height, 1))
    disparity = np.round(disparity * 256) / 256
    disparity[:4, :6] = np.nan
    return disparity.astype(np.float32)


def occluded(height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Pixels that only the left camera sees."""
    mask = np.zeros((height, width), bool)
    mask[10:14, :8] = True
    return mask


def write_image(
    path: Path, seed: int = 0, gray: bool = False, size: tuple[int, int] = (HEIGHT, WIDTH)
) -> None:
    shape = size if gray else (*size, 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))


def write_pair(left: Path, right: Path, seed: int = 0, gray: bool = False) -> None:
    write_image(left, 2 * seed, gray)
    write_image(right, 2 * seed + 1, gray)


def write_png16(path: Path, disparity: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.nan_to_num(disparity * 256).astype(np.uint16))


def write_png8(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), values.astype(np.uint8))


def write_pfm(path: Path, disparity: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.where(np.isnan(disparity), np.inf, disparity)[::-1].astype("<f4")
    path.write_bytes(f"Pf\n{disparity.shape[1]} {disparity.shape[0]}\n-1\n".encode() + rows.tobytes())


def write_mask(path: Path) -> None:
    write_png8(path, np.where(np.isnan(truth()), 0, np.where(occluded(), 128, 255)))


def sceneflow(root: Path, render: str = "finalpass") -> Path:
    """Two training pairs of FlyingThings3D, one each of Monkaa and Driving, one test pair."""
    scenes = {
        "FlyingThings3D": ("TRAIN/A/0000", "TRAIN/C/0012", "TEST/B/0003"),
        "Monkaa": ("a_rain_of_stones_x2",),
        "Driving": ("15mm_focallength/scene_forwards/fast",),
    }
    for subset, names in scenes.items():
        for seed, name in enumerate(names):
            frames = root / subset / f"frames_{render}" / name
            write_pair(frames / "left" / "0006.png", frames / "right" / "0006.png", seed)
            write_pfm(root / subset / "disparity" / name / "left" / "0006.pfm", truth())
    return root


def kitti2015(
    root: Path, frames: tuple[int, ...] = (0, 1, 2, 5), test_frames: tuple[int, ...] = (0, 1)
) -> Path:
    training, testing = root / "training", root / "testing"
    objects = np.zeros((HEIGHT, WIDTH))
    objects[:, 30:] = 2
    for frame in frames:
        file = f"{frame:06d}_10.png"
        write_pair(training / "image_2" / file, training / "image_3" / file, frame)
        write_png16(training / "disp_occ_0" / file, truth())
        write_png16(training / "disp_noc_0" / file, np.where(occluded(), np.nan, truth()))
        write_png8(training / "obj_map" / file, objects)
    for frame in test_frames:
        file = f"{frame:06d}_10.png"
        write_pair(testing / "image_2" / file, testing / "image_3" / file, 100 + frame)
    return root


def kitti2012(root: Path, gray: bool = False, frames: tuple[int, ...] = (0, 3, 193)) -> Path:
    left, right = ("image_0", "image_1") if gray else ("colored_0", "colored_1")
    for frame in frames:
        file = f"{frame:06d}_10.png"
        write_pair(root / "training" / left / file, root / "training" / right / file, frame, gray)
        write_png16(root / "training" / "disp_occ" / file, truth())
        write_png16(root / "training" / "disp_noc" / file, np.where(occluded(), np.nan, truth()))
    write_pair(root / "testing" / left / "000000_10.png", root / "testing" / right / "000000_10.png", 9, gray)
    return root


def scenes(folder: Path, names: tuple[str, ...], with_truth: bool, gray: bool = False) -> None:
    """Middlebury v3 and ETH3D: a folder per scene."""
    for seed, name in enumerate(names):
        write_pair(folder / name / "im0.png", folder / name / "im1.png", seed, gray)
        if with_truth:
            write_pfm(folder / name / "disp0GT.pfm", truth())
            write_mask(folder / name / "mask0nocc.png")


def middlebury(root: Path, resolution: str = "H") -> Path:
    scenes(root / f"training{resolution}", ("Adirondack", "Jadeplant"), with_truth=True)
    scenes(root / f"test{resolution}", ("Australia",), with_truth=False)
    return root


def eth3d(root: Path) -> Path:
    scenes(root / "two_view_training", ("delivery_area_1l", "forest_1s"), with_truth=True, gray=True)
    scenes(root / "two_view_test", ("lakeside_1l",), with_truth=False, gray=True)
    return root


def middlebury2006(root: Path) -> Path:
    """Two scenes of the 16-bit naming; the 8-bit ones need their published sizes."""
    for seed, name in enumerate(("2003-cones", "2006-aloe")):
        write_pair(root / name / "im0.png", root / name / "im1.png", seed)
        write_png16(root / name / "disp0.png", truth())
        write_mask(root / name / "mask0nocc.png")
    return root


def folder(root: Path) -> Path:
    """Three pairs with ground truth in three formats; the first one has a mask."""
    for seed, name in enumerate(("a", "b", "c")):
        write_pair(root / "left" / f"{name}.png", root / "right" / f"{name}.png", seed)
    write_png16(root / "disparity" / "a.png", truth())
    write_pfm(root / "disparity" / "b.pfm", truth())
    np.save(root / "disparity" / "c.npy", truth())
    write_mask(root / "mask" / "a.png")
    return root
