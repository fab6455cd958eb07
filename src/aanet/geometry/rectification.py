"""Rectification of raw pairs, and the common type of all calibrations."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.geometry.camera import StereoCamera
from aanet.io.images import AnyImage, PathLike, load_image

Matrix = NDArray[np.float64]

_LARGEST = 1e6  # of any number in a calibration
_DISTORTIONS = (4, 5, 8, 12, 14)  # numbers of coefficients in OpenCV's models


@dataclass(frozen=True)
class RawCalibration:
    """The result of `cv2.stereoCalibrate`: the intrinsics of both cameras, and the pose of the right one."""

    left_matrix: Matrix  # [3, 3]
    left_distortion: Matrix  # [N, 1]
    right_matrix: Matrix  # [3, 3]
    right_distortion: Matrix  # [N, 1]
    rotation: Matrix  # [3, 3], from the left camera's frame to the right one's
    translation: Matrix  # [3, 1], meters
    width: int | None = None  # of the images; None if the calibration does not state it
    height: int | None = None

    def __post_init__(self) -> None:
        for part in dataclasses.fields(self)[:6]:
            if not (np.abs(getattr(self, part.name)) <= _LARGEST).all():
                raise InputError(
                    f"The calibration's {part.name} has a number that is not finite or too large."
                )
        for side, matrix in (("left", self.left_matrix), ("right", self.right_matrix)):
            if not (matrix[0, 0] > 0 and matrix[1, 1] > 0):
                raise InputError(f"The focal lengths of the {side} camera matrix must be positive.")
        for distortion in (self.left_distortion, self.right_distortion):
            if distortion.size not in _DISTORTIONS:
                known = ", ".join(map(str, _DISTORTIONS))
                raise InputError(f"A distortion has one of {known} coefficients; got {distortion.size}.")
        identity = self.rotation @ self.rotation.T
        if np.abs(identity - np.eye(3)).max() > 1e-2 or np.linalg.det(self.rotation) < 0:
            raise InputError("The rotation between the cameras is not a rotation matrix.")
        if np.linalg.norm(self.translation) < 1 / _LARGEST:
            raise InputError("The distance between the cameras must be positive.")


class Calibration:
    """The calibration of a stereo pair; `aanet.load_calibration` reads one from a file.

    It describes rectified pairs (a `StereoCamera`) or raw ones (a `RawCalibration`); `camera` and `rectify`
    work for both.
    """

    def __init__(self, source: StereoCamera | RawCalibration) -> None:
        self._source = source
        self._sized: Calibration | None = None
        self._rectifier: StereoRectifier | None = None
        if isinstance(source, RawCalibration) and None not in (source.width, source.height):
            self._rectifier = StereoRectifier(source)

    @property
    def is_rectified(self) -> bool:
        """Whether the pairs are already rectified, so that `rectify` returns them unchanged."""
        return isinstance(self._source, StereoCamera)

    @property
    def camera(self) -> StereoCamera:
        """The geometry of the pair after `rectify`."""
        if isinstance(self._source, StereoCamera):
            return self._source
        if self._rectifier is None:
            raise InputError("The calibration does not state its image size; give it (size= or for_size).")
        return self._rectifier.camera

    def rectify(self, left: AnyImage | PathLike, right: AnyImage | PathLike) -> tuple[AnyImage, AnyImage]:
        """Rectify a pair; a pair that is already rectified is returned unchanged.

        Args:
            left: An image of the calibrated size, any type and number of channels, or the path of one.
            right: The same for the right camera.
        """
        pair = load_image(left), load_image(right)
        height, width = pair[0].shape[:2]
        rectifier = self.for_size(width, height)._rectifier
        return pair if rectifier is None else rectifier(*pair)

    def for_size(self, width: int, height: int) -> Calibration:
        """Return the calibration for images of this size: checked if it states a size, and set otherwise."""
        stated = (self._source.width, self._source.height)
        if (stated[0] or width, stated[1] or height) != (width, height):
            raise InputError(
                f"The calibration is for images of {stated[0]}×{stated[1]} pixels; "
                f"these have {width}×{height}."
            )
        if None not in stated:
            return self
        # Cached, so that the rectification maps are computed once per size.
        if self._sized is None or self._sized._source.width != width or self._sized._source.height != height:
            self._sized = Calibration(dataclasses.replace(self._source, width=width, height=height))
        return self._sized

    def __repr__(self) -> str:
        if self.is_rectified or self._rectifier is not None:
            return f"Calibration({'rectified' if self.is_rectified else 'raw'} pairs, {self.camera})"
        return "Calibration(raw pairs, image size not stated)"


class StereoRectifier:
    """Rectifies raw pairs; `camera` is the geometry of the rectified pairs."""

    def __init__(self, raw: RawCalibration) -> None:
        assert raw.width is not None
        assert raw.height is not None
        x, y = np.abs(raw.translation[:2, 0])
        if y > x:
            raise InputError(f"One camera is {y:.3g} m above the other; they must be side by side.")
        left = (raw.left_matrix, raw.left_distortion)
        right = (raw.right_matrix, raw.right_distortion)
        size = self._size = (raw.width, raw.height)
        try:
            left_turn, right_turn, left_projection, right_projection, *_ = cv2.stereoRectify(
                *left, *right, size, raw.rotation, raw.translation, flags=cv2.CALIB_ZERO_DISPARITY, alpha=0
            )
        except cv2.error as error:
            raise InputError(f"OpenCV cannot rectify with this calibration: {error.err}.") from error
        self.camera = StereoCamera.from_projections(
            np.asarray(left_projection, np.float64), np.asarray(right_projection, np.float64), *size
        )
        self._lenses = ((left, left_turn, left_projection), (right, right_turn, right_projection))

    @cached_property
    def _maps(self) -> list[tuple[AnyImage, AnyImage]]:
        """Computed for the first pair, because a calibration may state any size."""
        return [
            cv2.initUndistortRectifyMap(*lens, turn, projection, self._size, cv2.CV_32FC1)
            for lens, turn, projection in self._lenses
        ]

    def __call__(self, left: AnyImage, right: AnyImage) -> tuple[AnyImage, AnyImage]:
        """Rectify one raw pair of the calibrated size, any type and number of channels."""
        expected = (self.camera.height, self.camera.width)
        for side, image in (("left", left), ("right", right)):
            if image.shape[:2] != expected:
                raise InputError(
                    f"The calibration is for {expected[1]}×{expected[0]} images; "
                    f"the {side} one has {image.shape[1]}×{image.shape[0]}."
                )
        first, second = (
            cv2.remap(image, *maps, cv2.INTER_LINEAR)
            for image, maps in zip((left, right), self._maps, strict=True)
        )
        return first, second
