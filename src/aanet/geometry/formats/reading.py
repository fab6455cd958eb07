"""What the readers of calibration files share: units of length, distortion models, image sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aanet.errors import InputError, OptionError, ReadError
from aanet.geometry.key_values import Fields
from aanet.geometry.rectification import Matrix
from aanet.io.headers import MAX_SIDE

UNITS = {"mm": 0.001, "cm": 0.01, "m": 1.0}
UNIT_KEYS = ("unit", "units")
_UNIT_WORDS = {
    **{unit: unit for unit in UNITS},
    **{
        f"{prefix}{word}": unit
        for prefix, unit in (("milli", "mm"), ("centi", "cm"), ("", "m"))
        for word in ("meter", "meters", "metre", "metres")
    },
}
LONGEST_ASSUMED_M = 2.0  # a longer baseline is more often one in millimeters or centimeters

PINHOLE_MODELS = ("plumb_bob", "radtan", "rational_polynomial", "thin_prism", "brown_conrady", "pinhole")
FISHEYE_MODELS = ("fisheye", "equidistant", "equi", "kannala_brandt")

_SIDES = (("image_width", "image_height"), ("width", "height"))
_SIZES = ("imageSize", "image_size", "img_size", "size", "resolution")


@dataclass(frozen=True)
class Reading:
    """How to read a calibration: what its user says about it.

    Attributes:
        unit: Unit of its lengths, one of `UNITS`; None if it is not given.
        rectified: Whether the images are already rectified.
    """

    unit: str | None = None
    rectified: bool = False

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in UNITS:
            known = " or ".join(", ".join(UNITS).rsplit(", ", 1))
            raise InputError(f"The unit of a calibration is {known}; got {str(self.unit)[:30]!r}.")

    def meters_per_unit(self, baseline: float, name: str, stated: str | None = None) -> float:
        """Return the factor that makes lengths meters; a doubtful baseline needs a unit.

        Args:
            baseline: Distance between the cameras, in the unit of the file.
            name: What error messages call the file.
            stated: The unit that the file states, if any.
        """
        if stated is not None and self.unit is not None and stated != self.unit:
            raise InputError(
                f"{name} states that its lengths are in {stated}; the unit given is {self.unit}."
            )
        unit = stated or self.unit
        if unit is not None:
            return UNITS[unit]
        if baseline > LONGEST_ASSUMED_M:
            meanings = (f"{baseline * meters:.4g} m in {unit}" for unit, meters in UNITS.items())
            raise OptionError(
                f"{name}: the distance between the cameras is {baseline:.4g}, which is {', '.join(meanings)}",
                "give the unit, {unit}",
            )
        return 1.0


def is_fisheye(models: Sequence[str | None], distortions: Sequence[Matrix], name: str) -> bool:
    """Whether the distortion model of both cameras is that of a fisheye lens.

    Args:
        models: What the file states for each camera or for both, if anything.
        distortions: The coefficients of both cameras.
        name: What error messages call the file.
    """
    stated = {model.lower() for model in models if model is not None}
    for model in stated - {*PINHOLE_MODELS, *FISHEYE_MODELS}:
        known = ", ".join((*PINHOLE_MODELS, *FISHEYE_MODELS))
        raise ReadError(f"{name}: the distortion model {model[:30]!r} is not supported; known: {known}.")
    fisheye = {model in FISHEYE_MODELS for model in stated}
    if len(fisheye) > 1:
        raise ReadError(f"{name}: one camera is a fisheye camera, and the other is not; expected one model.")
    if fisheye:
        return fisheye.pop()
    if all(each.size == 4 for each in distortions) and any(each.any() for each in distortions):
        raise ReadError(
            f"{name}: four distortion coefficients may be k1, k2, p1, p2 of a pinhole camera or k1, k2, k3, "
            "k4 of a fisheye camera; state distortion_model in the file, as plumb_bob or fisheye."
        )
    return False


def stated_unit(files: Sequence[Fields]) -> str | None:
    """Return the unit of length that a file states in words, as `aanet calibrate` does; None otherwise."""
    words = (fields.text(key) for fields in files for key in UNIT_KEYS)
    return next((_UNIT_WORDS[word.lower()] for word in words if word and word.lower() in _UNIT_WORDS), None)


def image_size(fields: Fields) -> tuple[int, int] | None:
    """Return the width and the height that a file states, or None."""
    for sides in _SIDES:
        if all(side in fields for side in sides):
            width, height = (fields.numbers(side) for side in sides)
            return _side(width, fields.name), _side(height, fields.name)
    sizes = (fields.numbers(key).ravel() for key in _SIZES if key in fields)
    size = next((each for each in sizes if each.size == 2), None)  # others are sizes of something else
    return None if size is None else (_side(size[0], fields.name), _side(size[1], fields.name))


def common_size(files: Sequence[Fields]) -> tuple[int, int] | tuple[None, None]:
    """Return the size that the files state, which must agree."""
    sizes = {size for size in map(image_size, files) if size is not None}
    if len(sizes) > 1:
        listed = " and ".join(f"{width}×{height}" for width, height in sorted(sizes))
        raise ReadError(f"{files[0].name}: the cameras have images of different sizes, {listed} pixels.")
    return sizes.pop() if sizes else (None, None)


def shaped(fields: Fields, key: str, *shape: int) -> Matrix:
    """Return the numbers of a key as an array of this shape."""
    values = fields.numbers(key)
    if values.size != int(np.prod(shape)):
        size = "×".join(map(str, shape))
        raise ReadError(f"{fields.name}: expected {size} numbers in {key}; got {values.size}.")
    return values.reshape(shape)


def _side(value: Matrix, name: str) -> int:
    """A side of the images in pixels."""
    side = float(np.asarray(value).item()) if np.size(value) == 1 else 0.0
    if not 1 <= side <= MAX_SIDE or side != int(side):
        raise ReadError(
            f"{name}: expected a width and a height of 1 to {MAX_SIDE} whole pixels; got {side:g}."
        )
    return int(side)
