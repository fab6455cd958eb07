"""From what a user gives to a pair that is ready to be matched: read, rectified and checked."""

from __future__ import annotations

import os
from dataclasses import dataclass

from aanet.errors import InputError
from aanet.geometry.calibration import load_calibration
from aanet.geometry.camera import StereoCamera
from aanet.geometry.rectification import Calibration
from aanet.inference.options import MatchOptions
from aanet.inference.pair_checks import check_pair
from aanet.io.images import AnyImage, load_image

Source = AnyImage | str | os.PathLike[str]
AnyCalibration = Calibration | StereoCamera | str | os.PathLike[str]


@dataclass(frozen=True)
class PreparedPair:
    """A pair that is ready to be matched."""

    left: AnyImage
    right: AnyImage
    camera: StereoCamera | None
    warnings: list[str]
    notes: list[str]


def prepare_pair(
    left: Source, right: Source, calibration: Calibration | None, options: MatchOptions
) -> PreparedPair:
    """Read, rectify and check a pair, so that errors are raised before it is matched."""
    first, second = load_image(left), load_image(right)
    _require_one_size(first, second)
    camera = None
    if calibration is not None:
        calibration = calibration.for_size(first.shape[1], first.shape[0])
        first, second = calibration.rectify(first, second)
        camera = calibration.camera
    findings = check_pair(first, second) if options.inspect or options.strict else []
    notes = [finding.message for finding in findings if finding.severity == "note"]
    warnings = [finding.message for finding in findings if finding.severity != "note"]
    if options.strict and warnings:
        raise InputError(" ".join(warnings))
    return PreparedPair(first, second, camera, warnings, notes)


def as_calibration(given: AnyCalibration) -> Calibration:
    """Return a calibration that is given as such, as the camera of a rectified pair, or as a file."""
    if isinstance(given, str | os.PathLike):
        return load_calibration(given)
    if not isinstance(given, StereoCamera | Calibration):
        raise InputError(f"Expected a calibration, a camera, or the path of a file; got {given!r}.")
    return Calibration(given) if isinstance(given, StereoCamera) else given


def _require_one_size(left: AnyImage, right: AnyImage) -> None:
    if left.shape[:2] != right.shape[:2]:
        sizes = [" × ".join(str(side) for side in image.shape[1::-1]) for image in (left, right)]
        raise InputError(
            f"The left image has {sizes[0]} pixels, the right one {sizes[1]}; a rectified pair has one size."
        )
