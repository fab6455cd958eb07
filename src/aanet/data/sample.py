"""A stereo pair with its ground truth: the type that every dataset yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.typing import FloatMap, Image, Mask


@dataclass
class StereoSample:
    """A rectified pair and its ground truth, on the grid of the left image unless noted otherwise.

    Disparities are in pixels, positive, `left(x) = right(x - d)`, and 0 where `valid` is False.
    """

    name: str
    left: Image  # [H, W, 3] RGB
    right: Image  # [H, W, 3] RGB
    disparity: FloatMap | None = None  # [H, W]
    valid: Mask | None = None  # [H, W], where the disparity is known
    visible: Mask | None = None  # [H, W], seen by both cameras (False = occluded); None = not known
    foreground: Mask | None = None  # [H, W], on an independently moving object (KITTI 2015)
    pseudo_disparity: FloatMap | None = None  # [H, W], predicted by another network; 0 = none
    right_disparity: FloatMap | None = None  # [H, W], on the grid of the right image
    right_visible: Mask | None = None  # [H, W], on the grid of the right image

    def __post_init__(self) -> None:
        size = self.left.shape[:2]
        if self.right.shape[:2] != size:
            raise InputError(
                f"{self.name}: the left image is {_size(self.left)} and the right {_size(self.right)}; "
                "both images of a rectified pair must have the same size."
            )
        for field in ("disparity", "valid", "visible", "foreground", "pseudo_disparity"):
            value = getattr(self, field)
            if value is not None and value.shape != size:
                raise InputError(
                    f"{self.name}: the {field.replace('_', ' ')} map is {_size(value)}, but the images are "
                    f"{_size(self.left)}."
                )


def _size(array: NDArray[Any]) -> str:
    return f"{array.shape[0]}×{array.shape[1]}"
