"""One camera: its intrinsics and distortion, fitted to the corners of the board in many views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError

Matrix = NDArray[np.float64]
Model = Literal["pinhole", "fisheye"]

_K3_GAIN = 0.98  # k3 is fitted only if it lowers the error to this part: it is wild outside of the corners
STOP = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 100, 1e-9)  # of all fits


class Pose(NamedTuple):
    """Where the board is in the frame of a camera: X_camera = rotation · X_board + translation."""

    rotation: Matrix  # [3, 3]
    translation: Matrix  # [3], meters

    def moved_by(self, rotation: Matrix, translation: Matrix) -> Pose:
        """The same board in the frame of another camera."""
        return Pose(rotation @ self.rotation, rotation @ self.translation + translation.ravel())


@dataclass(frozen=True)
class Lens:
    """Intrinsics and distortion: OpenCV's polynomial for a pinhole camera, Kannala–Brandt's for a fisheye."""

    model: Model
    matrix: Matrix  # [3, 3]
    distortion: Matrix  # [N, 1]

    def project(self, board: Matrix, pose: Pose) -> Matrix:
        """Pixels of points on the board, [N, 2]."""
        turn, _ = cv2.Rodrigues(pose.rotation)
        function = cv2.projectPoints if self.model == "pinhole" else cv2.fisheye.projectPoints
        shift = pose.translation.reshape(3, 1)
        pixels, _ = function(board.reshape(-1, 1, 3), turn, shift, self.matrix, self.distortion)
        return np.asarray(pixels, np.float64).reshape(-1, 2)

    def rectify(self, points: Matrix, rotation: Matrix, projection: Matrix) -> Matrix:
        """Where pixels of the raw image are in the rectified one, [N, 2]."""
        function = cv2.undistortPoints if self.model == "pinhole" else cv2.fisheye.undistortPoints
        rectified = function(points.reshape(-1, 1, 2), self.matrix, self.distortion, R=rotation, P=projection)
        return np.asarray(rectified, np.float64).reshape(-1, 2)

    def field_of_view(self, size: tuple[int, int]) -> tuple[float, float]:
        """Horizontal and vertical angle in degrees, from the centers of opposite borders."""
        (width, height), (cx, cy) = size, self.matrix[:2, 2]
        borders = [(-0.5, cy), (width - 0.5, cy), (cx, -0.5), (cx, height - 0.5)]
        angles = [self._angle(x, y) for x, y in borders]
        return angles[0] + angles[1], angles[2] + angles[3]

    def _angle(self, x: float, y: float) -> float:
        """Degrees between the optical axis and the ray of a pixel."""
        focal = self.matrix[[0, 1], [0, 1]]
        if self.model == "fisheye":
            theta = np.linspace(0, np.pi, 2000)
            powers = theta ** np.array([[3], [5], [7], [9]])
            bent = theta + (self.distortion.reshape(4, 1) * powers).sum(axis=0)
            valid = (
                int(np.argmax(np.append(np.diff(bent) <= 0, True))) + 1
            )  # before the polynomial turns back
            distance = float(np.linalg.norm((np.array([x, y]) - self.matrix[:2, 2]) / focal))
            return float(np.degrees(np.interp(distance, bent[:valid], theta[:valid])))
        ray = self.rectify(np.array([[x, y]]), np.eye(3), np.eye(3))
        return float(np.degrees(np.arctan(np.linalg.norm(ray))))


class Fit(NamedTuple):
    """A lens, and the pose of the board in each view that it was fitted to."""

    lens: Lens
    poses: list[Pose]


def fit_lens(model: Model, boards: Sequence[Matrix], points: Sequence[Matrix], size: tuple[int, int]) -> Fit:
    """Fit a lens to views of the board.

    Args:
        model: The model of the distortion.
        boards: For each view, the corners that were found, on the board in meters, [N, 3].
        points: The same corners in the image in pixels, [N, 2].
        size: Width and height of the images.
    """
    try:
        if model == "fisheye":
            return _fit_fisheye(boards, points, size)
        simple = _fit_pinhole(boards, points, size, cv2.CALIB_FIX_K3)
        full = _fit_pinhole(boards, points, size, 0)
    except cv2.error as error:
        raise InputError(
            "The views of the board do not determine the camera; photograph it tilted and in all parts of "
            f"the image (OpenCV: {error.err})."
        ) from error
    better = rms(errors(full, boards, points)) < _K3_GAIN * rms(errors(simple, boards, points))
    return full if better else simple


def errors(fit: Fit, boards: Sequence[Matrix], points: Sequence[Matrix]) -> list[Matrix]:
    """Distances in pixels between the corners and their projections, for each view, [N]."""
    return [
        np.linalg.norm(fit.lens.project(board, pose) - pixels, axis=1)
        for board, pixels, pose in zip(boards, points, fit.poses, strict=True)
    ]


def rms(distances: Sequence[Matrix]) -> float:
    """Root mean square over all corners of all views; infinite if there are none."""
    every = np.concatenate([np.ravel(each) for each in distances])
    return float(np.sqrt(np.mean(np.square(every)))) if every.size else math.inf


def fisheye_flag(name: str) -> int:
    """A flag of `cv2.fisheye`, which OpenCV 5 has moved to `cv2`."""
    return int(getattr(cv2.fisheye, name, None) or getattr(cv2, name))


def _fit_pinhole(
    boards: Sequence[Matrix], points: Sequence[Matrix], size: tuple[int, int], flags: int
) -> Fit:
    _, matrix, distortion, turns, shifts = cv2.calibrateCamera(
        [board.astype(np.float32) for board in boards],
        [pixels.astype(np.float32) for pixels in points],
        size,
        np.eye(3),
        np.zeros((5, 1)),
        flags=flags,
        criteria=STOP,
    )
    return _as_fit("pinhole", matrix, np.ravel(distortion)[:5], turns, shifts)


def _fit_fisheye(boards: Sequence[Matrix], points: Sequence[Matrix], size: tuple[int, int]) -> Fit:
    _, matrix, distortion, turns, shifts = cv2.fisheye.calibrate(
        [board.reshape(1, -1, 3) for board in boards],  # OpenCV 5 refuses [N, 1, 3]
        [pixels.reshape(1, -1, 2) for pixels in points],
        size,
        np.eye(3),
        np.zeros((4, 1)),
        flags=fisheye_flag("CALIB_RECOMPUTE_EXTRINSIC") | fisheye_flag("CALIB_FIX_SKEW"),
        criteria=STOP,
    )
    return _as_fit("fisheye", matrix, distortion, turns, shifts)


def _as_fit(
    model: Model, matrix: object, distortion: object, turns: Sequence[object], shifts: Sequence[object]
) -> Fit:
    lens = Lens(model, np.asarray(matrix, np.float64), np.asarray(distortion, np.float64).reshape(-1, 1))
    if not (np.isfinite(lens.matrix).all() and np.isfinite(lens.distortion).all()):
        raise InputError("The views of the board do not determine the camera; photograph it tilted.")
    poses = [
        Pose(
            np.asarray(cv2.Rodrigues(np.asarray(turn, np.float64).reshape(3, 1))[0], np.float64),
            np.asarray(shift, np.float64).ravel(),
        )
        for turn, shift in zip(turns, shifts, strict=True)
    ]
    return Fit(lens, poses)
