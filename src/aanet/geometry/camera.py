"""The geometry of a rectified stereo camera: from disparity to depth and back."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.io.atomic import write_bytes
from aanet.io.headers import MAX_SIDE
from aanet.io.images import PathLike
from aanet.typing import FloatMap

JSON_FORMAT = "aanet-stereo-camera"
_SMALLEST, _LARGEST = 1e-6, 1e6  # of focal lengths and principal points in pixels, and of baselines in meters


@dataclass(frozen=True)
class StereoCamera:
    """Two rectified pinhole cameras with parallel axes; the center of the top left pixel is (0, 0).

    Attributes:
        fx: Focal length in pixels, common to both cameras.
        cx: Column of the left principal point.
        cy: Row of both principal points.
        baseline_m: Distance between the two centers in meters.
        width: Width of the images in pixels; None if the calibration does not state it.
        height: Height of the images in pixels; None if the calibration does not state it.
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
        for name in ("width", "height"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and 1 <= value <= MAX_SIDE):
                expected = f"a whole number of pixels from 1 to {MAX_SIDE}"
                raise InputError(f"The camera's {name} must be {expected}; got {str(value)[:30]}.")
        for name in ("fx", "fy", "baseline_m", "cx", "cy", "cx_right"):
            value = getattr(self, name)
            if value is None and name in ("fy", "cx_right"):
                continue
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            low = -_LARGEST if name.startswith("c") else _SMALLEST
            if not (number and low <= value <= _LARGEST):
                expected = f"a{' positive' if low > 0 else ''} number, at most {_LARGEST:g}"
                raise InputError(f"The camera's {name} must be {expected}; got {str(value)[:30]}.")

    @property
    def doffs(self) -> float:
        """Difference of the principal points, cx_right − cx; points at infinity have the disparity −doffs."""
        return 0.0 if self.cx_right is None else self.cx_right - self.cx

    @classmethod
    def from_projections(
        cls,
        left: NDArray[np.float64],
        right: NDArray[np.float64],
        width: int | None = None,
        height: int | None = None,
    ) -> StereoCamera:
        """Make a camera from 3×4 projections K [I | t] of a rectified pair, as of `cv2.stereoRectify`.

        The top right entry is fx · tx, and tx = −baseline on the right.
        """
        for projection in (left, right):
            if projection.shape != (3, 4) or not np.isfinite(projection).all() or projection[0, 0] <= 0:
                raise InputError(
                    "Expected 3×4 projection matrices of finite numbers with a positive focal length."
                )
        fx = float(left[0, 0])
        baseline = float(left[0, 3] - right[0, 3]) / fx
        if baseline <= 0:
            raise InputError(
                f"The second camera is {-baseline:.4g} m to the left of the first; "
                "the first must be the left one."
            )
        if abs(right[0, 0] - fx) > 1e-3 * fx or abs(right[1, 2] - left[1, 2]) > 0.5:
            raise InputError(
                "The two projection matrices differ in focal length or in the row of the principal point; "
                "expected those of a rectified pair."
            )
        return cls(
            fx=fx,
            fy=float(left[1, 1]),
            cx=float(left[0, 2]),
            cy=float(left[1, 2]),
            cx_right=float(right[0, 2]),
            baseline_m=baseline,
            width=width,
            height=height,
        )

    def to_json(self) -> str:
        """Return the camera as JSON; `aanet.load_calibration` reads it back exactly."""
        return json.dumps({"format": JSON_FORMAT, **dataclasses.asdict(self)}, indent=2) + "\n"

    def save(self, path: PathLike) -> None:
        """Write the camera as JSON; `aanet.load_calibration` reads it back exactly."""
        write_bytes(path, self.to_json().encode())

    def depth(self, disparity: FloatMap) -> FloatMap:
        """Meters along the optical axis, fx · baseline / (disparity + doffs); NaN if unknown or at infinity.

        Args:
            disparity: Pixels, [..., H, W] on the grid of this camera; not finite where unknown.
        """
        self._require_own_grid(disparity.shape)
        above_infinity = disparity.astype(np.float64) + self.doffs
        known = np.isfinite(above_infinity) & (above_infinity > 0)
        depth = self.fx * self.baseline_m / np.where(known, above_infinity, np.nan)
        return depth.astype(np.float32)

    def disparity(self, depth: FloatMap) -> FloatMap:
        """Disparity in pixels from a depth map in meters; the inverse of `depth`."""
        self._require_own_grid(depth.shape)
        known = np.isfinite(depth) & (depth > 0)
        meters = np.where(known, depth, np.nan).astype(np.float64)
        return (self.fx * self.baseline_m / meters - self.doffs).astype(np.float32)

    def points(self, disparity: FloatMap) -> FloatMap:
        """Points in meters in the left camera's frame, [H, W, 3]: X right, Y down, Z forward; or NaN."""
        z = self.depth(disparity).astype(np.float64)
        rows, columns = np.indices(z.shape, dtype=np.float64)
        x = (columns - self.cx) * z / self.fx
        y = (rows - self.cy) * z / (self.fy or self.fx)
        return np.stack([x, y, z], axis=-1).astype(np.float32)

    def resized(self, width: int, height: int) -> StereoCamera:
        """The camera for images resized to another size (pixel areas stay aligned: x' = (x + ½) s − ½)."""
        if self.width is None or self.height is None:
            raise InputError("The camera does not state its image size, so it cannot be resized.")
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
        """The camera for the same window, with its top left corner at (x, y), of both images."""
        return dataclasses.replace(
            self,
            cx=self.cx - x,
            cy=self.cy - y,
            cx_right=None if self.cx_right is None else self.cx_right - x,
            width=width,
            height=height,
        )

    def _require_own_grid(self, shape: tuple[int, ...]) -> None:
        """Refuse a map of another size, because its depth would be wrong."""
        height, width = shape[-2:]
        if (self.width or width, self.height or height) != (width, height):
            raise InputError(
                f"The camera is for images of {self.width}×{self.height} pixels, the map has "
                f"{width}×{height}; use camera.resized(...) or camera.cropped(...)."
            )
