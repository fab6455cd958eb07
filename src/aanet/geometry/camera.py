"""The geometry of a rectified stereo camera: pixels of disparity to meters and back."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import numpy as np

from aanet.errors import AanetError
from aanet.io.atomic import atomic_path
from aanet.io.images import PathLike
from aanet.typing import FloatMap

JSON_FORMAT = "aanet-stereo-camera"


@dataclass(frozen=True)
class StereoCamera:
    """Two rectified pinhole cameras with parallel axes; the center of the top left pixel is (0, 0).

    Attributes:
        fx: Focal length in pixels, common to both cameras.
        cx: Column of the left principal point.
        cy: Row of both principal points.
        baseline_m: Distance between the two centers in meters.
        width: Width of the images in pixels; None when the calibration does not say.
        height: Height of the images in pixels; None when the calibration does not say.
        cx_right: Column of the right principal point; None means the same as `cx`.
        fy: Vertical focal length in pixels; None means the same as `fx`.
    """

    fx: float
    cx: float
    cy: float
    baseline_m: float
    width: int | None = None
    height: int | None = None
    cx_right: float | None = None
    fy: float | None = None

    def __post_init__(self) -> None:
        for name in ("fx", "fy", "baseline_m", "width", "height"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise AanetError(f"The camera's {name} must be a positive number; got {value}.")

    @property
    def doffs(self) -> float:
        """How much the principal points differ, cx_right − cx: the disparity of infinity is −doffs."""
        return 0.0 if self.cx_right is None else self.cx_right - self.cx

    @classmethod
    def load(cls, path: PathLike, right_path: PathLike | None = None) -> StereoCamera:
        """Read a calibration of any kind that `load_calibration` knows; ROS has one file for each camera.

        For a raw calibration of OpenCV this is the camera of the pair *after* rectification.
        """
        from aanet.geometry.calibration import StereoRectifier, load_calibration

        loaded = load_calibration(path, right_path)
        return loaded.camera if isinstance(loaded, StereoRectifier) else loaded

    def save(self, path: PathLike) -> None:
        """Write the camera as JSON; `load` reads it back exactly."""
        content = {"format": JSON_FORMAT, **dataclasses.asdict(self)}
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def depth(self, disparity: FloatMap) -> FloatMap:
        """Meters along the optical axis, fx · baseline / (disparity + doffs); NaN where that has no meaning.

        Args:
            disparity: Pixels, [..., H, W] on the grid of this camera; not finite means unknown.
        """
        self._require_own_grid(disparity.shape)
        above_infinity = disparity.astype(np.float64) + self.doffs
        known = np.isfinite(above_infinity) & (above_infinity > 0)
        depth = self.fx * self.baseline_m / np.where(known, above_infinity, np.nan)
        return depth.astype(np.float32)

    def disparity(self, depth: FloatMap) -> FloatMap:
        """Pixels of disparity of a depth map in meters, the inverse of `depth`."""
        self._require_own_grid(depth.shape)
        known = np.isfinite(depth) & (depth > 0)
        meters = np.where(known, depth, np.nan).astype(np.float64)
        return (self.fx * self.baseline_m / meters - self.doffs).astype(np.float32)

    def points(self, disparity: FloatMap) -> FloatMap:
        """Meters in the left camera's frame, [H, W, 3]: X right, Y down, Z forward; NaN where unknown."""
        z = self.depth(disparity).astype(np.float64)
        rows, columns = np.indices(z.shape, dtype=np.float64)
        x = (columns - self.cx) * z / self.fx
        y = (rows - self.cy) * z / (self.fy or self.fx)
        return np.stack([x, y, z], axis=-1).astype(np.float32)

    def resized(self, width: int, height: int) -> StereoCamera:
        """The camera of images scaled to another size (pixel areas stay aligned: x' = (x + ½) s − ½)."""
        if self.width is None or self.height is None:
            raise AanetError("The calibration does not state its image size, so it cannot follow a resize.")
        sx, sy = width / self.width, height / self.height
        return StereoCamera(
            fx=self.fx * sx,
            fy=(self.fy or self.fx) * sy,
            cx=(self.cx + 0.5) * sx - 0.5,
            cy=(self.cy + 0.5) * sy - 0.5,
            cx_right=None if self.cx_right is None else (self.cx_right + 0.5) * sx - 0.5,
            baseline_m=self.baseline_m,
            width=width,
            height=height,
        )

    def cropped(self, x: int, y: int, width: int, height: int) -> StereoCamera:
        """The camera of the same window, with its corner at (x, y), cut from both images."""
        return dataclasses.replace(
            self,
            cx=self.cx - x,
            cy=self.cy - y,
            cx_right=None if self.cx_right is None else self.cx_right - x,
            width=width,
            height=height,
        )

    def _require_own_grid(self, shape: tuple[int, ...]) -> None:
        """A map of another size has other pixels: depth from it would be wrong without a sign of it."""
        height, width = shape[-2:]
        if (self.width or width, self.height or height) != (width, height):
            raise AanetError(
                f"The camera is for images of {self.width}×{self.height} pixels, the map has "
                f"{width}×{height}; use camera.resized(...) or camera.cropped(...)."
            )
