"""Rectification of raw pairs, and the common type of all calibrations."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError, OptionError
from aanet.geometry.camera import StereoCamera
from aanet.io.images import AnyImage, PathLike, load_image

Matrix = NDArray[np.float64]

_LARGEST = 1e6  # of any number in a calibration
_DISTORTIONS = (4, 5, 8, 12, 14)  # numbers of coefficients in OpenCV's models
_FISHEYE_DISTORTION = 4
_WIDEST_DEGREES = 120  # field of view of a rectified image of fisheye cameras, along its longer side


class Rectification(NamedTuple):
    """Rotations [3, 3] of both cameras and projections [3, 4] of the rectified images, in meters."""

    left_rotation: Matrix
    right_rotation: Matrix
    left_projection: Matrix
    right_projection: Matrix


@dataclass(frozen=True)
class RawCalibration:
    """The result of `cv2.stereoCalibrate`: the intrinsics of both cameras, and the pose of the right one.

    The distortion of fisheye cameras is that of Kannala and Brandt, as in `cv2.fisheye.stereoCalibrate`.
    """

    left_matrix: Matrix  # [3, 3]
    left_distortion: Matrix  # [N, 1]
    right_matrix: Matrix  # [3, 3]
    right_distortion: Matrix  # [N, 1]
    rotation: Matrix  # [3, 3], from the left camera's frame to the right one's
    translation: Matrix  # [3, 1], meters
    width: int | None = None  # of the images; None if the calibration does not state it
    height: int | None = None
    fisheye: bool = False
    rectification: Rectification | None = None  # computed if there is none

    def __post_init__(self) -> None:
        for part in dataclasses.fields(self)[:6]:
            if not (np.abs(getattr(self, part.name)) <= _LARGEST).all():
                raise InputError(
                    f"The calibration's {part.name} has a number that is not finite or too large."
                )
        for side, matrix in (("left", self.left_matrix), ("right", self.right_matrix)):
            if not (matrix[0, 0] > 0 and matrix[1, 1] > 0):
                raise InputError(f"The focal lengths of the {side} camera matrix must be positive.")
        known = (_FISHEYE_DISTORTION,) if self.fisheye else _DISTORTIONS
        for distortion in (self.left_distortion, self.right_distortion):
            if distortion.size not in known:
                kind, listed = "fisheye" if self.fisheye else "pinhole", " or ".join(map(str, known))
                raise InputError(
                    f"The distortion of a {kind} camera has {listed} coefficients; got {distortion.size}."
                )
        if np.linalg.norm(self.translation) < 1 / _LARGEST:
            raise InputError("The distance between the cameras must be positive.")
        for rotation in (self.rotation, *(self.rectification or ())[:2]):
            identity = rotation @ rotation.T
            if not np.abs(identity - np.eye(3)).max() <= 1e-2 or np.linalg.det(rotation) < 0:
                raise InputError("A rotation in the calibration is not a rotation matrix.")

    def resized(self, width: int, height: int) -> RawCalibration:
        """The calibration for images resized to another size (pixel areas stay aligned)."""
        if self.width is None or self.height is None:
            raise InputError("The calibration does not state its image size, so it cannot be resized.")
        sx, sy = width / self.width, height / self.height
        # x' = (x + ½) s − ½
        scale = np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2], [0, 0, 1]])
        given = self.rectification
        return dataclasses.replace(
            self,
            left_matrix=scale @ self.left_matrix,
            right_matrix=scale @ self.right_matrix,
            width=width,
            height=height,
            rectification=given
            and given._replace(
                left_projection=scale @ given.left_projection, right_projection=scale @ given.right_projection
            ),
        )


class Calibration:
    """The calibration of a stereo pair; `aanet.load_calibration` reads one from a file.

    It describes rectified pairs (a `StereoCamera`) or raw ones (a `RawCalibration`); `camera` and `rectify`
    work for both.
    """

    def __init__(self, source: StereoCamera | RawCalibration, *, resized: bool = False) -> None:
        """Make a calibration.

        Args:
            source: What is known of the cameras.
            resized: Whether to scale it to images of another size with the same shape.
        """
        self._source = source
        self._resized = resized
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
            raise InputError("The calibration does not state its image size; set it with for_size.")
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
        """Return the calibration for images of this size.

        It is checked if the calibration states a size, and set otherwise; with `resized`, the calibration is
        scaled.
        """
        if (self._source.width, self._source.height) == (width, height):
            return self
        # Cached, so that the rectification maps are computed once per size.
        cached = self._sized and (self._sized._source.width, self._sized._source.height)
        if self._sized is None or cached != (width, height):
            self._sized = Calibration(self._source_for(width, height))
        return self._sized

    def _source_for(self, width: int, height: int) -> StereoCamera | RawCalibration:
        stated_width, stated_height = self._source.width, self._source.height
        if self._resized and (stated_width is None or stated_height is None):
            raise InputError("The calibration does not state its image size, so it cannot be resized.")
        if (stated_width or width, stated_height or height) == (width, height):
            return dataclasses.replace(self._source, width=width, height=height)
        problem = (
            f"The calibration is for images of {stated_width}×{stated_height} pixels; "
            f"these have {width}×{height}"
        )
        # Of the same shape if the height is that of the scaled images, up to rounding.
        if not stated_width or not stated_height or abs(stated_height * width / stated_width - height) > 1:
            raise InputError(f"{problem}.")
        if not self._resized:
            raise OptionError(problem, "if they were resized from that size, and not cropped, give {resized}")
        return self._source.resized(width, height)

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
        self._raw = raw
        self._rectification = given = raw.rectification or stereo_rectify(raw)
        self.camera = StereoCamera.from_projections(
            given.left_projection, given.right_projection, raw.width, raw.height
        )

    @cached_property
    def _maps(self) -> list[tuple[AnyImage, AnyImage]]:
        """Computed for the first pair, because a calibration may state any size."""
        raw, given = self._raw, self._rectification
        make_maps: Any = cv2.fisheye.initUndistortRectifyMap if raw.fisheye else cv2.initUndistortRectifyMap
        size = (raw.width, raw.height)
        return [
            make_maps(matrix, distortion, rotation, projection[:, :3], size, cv2.CV_32FC1)
            for matrix, distortion, rotation, projection in (
                (raw.left_matrix, raw.left_distortion, given.left_rotation, given.left_projection),
                (raw.right_matrix, raw.right_distortion, given.right_rotation, given.right_projection),
            )
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


def stereo_rectify(raw: RawCalibration) -> Rectification:
    """Rectify so that all pixels are inside both raw images, and infinity has no disparity."""
    lenses = (raw.left_matrix, raw.left_distortion, raw.right_matrix, raw.right_distortion)
    pose = ((raw.width, raw.height), raw.rotation, raw.translation)
    rectify: Any = cv2.fisheye.stereoRectify if raw.fisheye else cv2.stereoRectify
    inside = {"balance": 0} if raw.fisheye else {"alpha": 0}
    try:
        found = rectify(*lenses, *pose, flags=cv2.CALIB_ZERO_DISPARITY, **inside)
    except cv2.error as error:
        raise InputError(f"OpenCV cannot rectify with this calibration: {error.err}.") from error
    rectification = Rectification(*(np.asarray(each, np.float64) for each in found[:4]))
    return _within_field_of_view(raw, rectification) if raw.fisheye else rectification


def _within_field_of_view(raw: RawCalibration, found: Rectification) -> Rectification:
    """Limit the field of view, because a plane cannot show 180°; OpenCV finds a focal length of zero then."""
    assert raw.width is not None
    assert raw.height is not None
    focal = max(raw.width, raw.height) / 2 / np.tan(np.radians(_WIDEST_DEGREES / 2))
    if np.isfinite(found.left_projection).all() and found.left_projection[0, 0] >= focal:
        return found
    left = np.array([[focal, 0, (raw.width - 1) / 2, 0], [0, focal, (raw.height - 1) / 2, 0], [0, 0, 1, 0]])
    right = left.copy()
    right[0, 3] = focal * (found.right_rotation @ raw.translation)[0, 0]
    return found._replace(left_projection=left, right_projection=right)
