"""Calibrate a stereo rig from photographs of a board: `aanet.calibrate`, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np

from aanet.errors import InputError
from aanet.geometry.calibration import parse_calibration
from aanet.geometry.rectification import Calibration
from aanet.io.atomic import write_bytes
from aanet.io.images import AnyImage, PathLike, encode_image, load_image
from aanet.io.pairs import Pair, Pairs
from aanet.rig.assessment import Assessment, assess
from aanet.rig.lens import Model
from aanet.rig.pattern import Pattern
from aanet.rig.picture import draw
from aanet.rig.solve import Solution, solve
from aanet.rig.storage import rig_yaml
from aanet.rig.views import SIDES, View, Views, collect_views
from aanet.typing import Image

_SHOWN_NAMES = 8  # of pairs with the same reason; `summary` has them all
ImagePair = tuple[AnyImage | PathLike, AnyImage | PathLike]


def calibrate(
    pairs: Pairs | Iterable[Pair | ImagePair],
    pattern: Pattern | str,
    square_mm: float | None = None,
    *,
    model: Model = "pinhole",
) -> RigCalibration:
    """Calibrate a stereo rig from pairs of photographs of a board.

    Args:
        pairs: Pairs of images or of their paths, left first; or what `aanet.io.pairs.find_pairs` finds.
        pattern: The board, as in chessboard:9x6 (inner corners), with `square_mm`; or a `Pattern`.
        square_mm: Side of a square in millimeters.
        model: pinhole (OpenCV's polynomial distortion) or fisheye (Kannala–Brandt).
    """
    if model not in get_args(Model):
        raise InputError(f"The model is one of {', '.join(get_args(Model))}; got {model!r}.")
    if isinstance(pattern, str):
        if square_mm is None:
            raise InputError("The side of a square in millimeters is missing (square_mm).")
        pattern = Pattern.parse(pattern, square_mm)
    views = collect_views(pairs if isinstance(pairs, Pairs) else _named(pairs), pattern)
    solution = solve(views, model)
    return RigCalibration(views, solution, assess(views, solution))


def _named(pairs: Iterable[Pair | ImagePair]) -> Iterator[Pair]:
    for index, pair in enumerate(pairs):
        yield pair if isinstance(pair, Pair) else Pair(f"pair_{index:03d}", partial(_load, *pair))


def _load(left: AnyImage | PathLike, right: AnyImage | PathLike) -> tuple[AnyImage, AnyImage]:
    return load_image(left), load_image(right)


@dataclass(frozen=True)
class RigCalibration:
    """A calibrated stereo rig, and how far it can be trusted."""

    views: Views
    solution: Solution
    assessment: Assessment

    def __repr__(self) -> str:
        width, height = self.views.size
        return (
            f"RigCalibration({width}×{height}, {self.solution.lenses[0].model}, "
            f"baseline {1000 * self.baseline_m:.1f} mm, epipolar error {self.solution.epipolar_rms:.2f} px, "
            f"{len(self.solution.pairs)} pairs, {'good' if self.is_good else 'bad'})"
        )

    def _repr_png_(self) -> bytes:
        return encode_image(self.picture(), ".png")

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the calibration; `problems` says what does."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """Why the calibration is bad, in plain sentences."""
        return self.assessment.problems

    @property
    def baseline_m(self) -> float:
        """Distance between the cameras in meters."""
        return float(np.linalg.norm(self.solution.translation))

    @property
    def calibration(self) -> Calibration:
        """The calibration as `aanet.load_calibration` returns it."""
        return parse_calibration(self.to_yaml())

    def to_yaml(self) -> str:
        """The calibration as an OpenCV FileStorage."""
        return rig_yaml(self.solution, self.views.size)

    def save(self, path: PathLike, force: bool = False) -> None:
        """Write the calibration as YAML; a bad one only with `force`."""
        if self.problems and not force:
            raise InputError(f"The calibration is bad and is not written: {self.problems[0]}")
        write_bytes(path, self.to_yaml().encode())

    def save_picture(self, path: PathLike) -> None:
        """Write the picture as PNG."""
        write_bytes(path, self._repr_png_())

    def picture(self) -> Image:
        """A picture of where the corners are, and of a rectified pair."""
        fields = [lens.field_of_view(self.views.size) for lens in self.solution.lenses]
        titles = [
            f"{side} camera: corners in {100 * self.assessment.coverage[index]:.0f} % of the cells, "
            f"f = {self.solution.lenses[index].matrix[0, 0]:.1f} px, "
            f"{fields[index][0]:.0f}° × {fields[index][1]:.0f}°"
            for index, side in enumerate(SIDES)
        ]
        titles += [
            f"rectified left: epipolar error {self.solution.epipolar_rms:.2f} px, "
            f"{'a good' if self.is_good else 'A BAD'} calibration",
            f"rectified right: baseline {1000 * self.baseline_m:.1f} mm, {len(self.solution.pairs)} pairs",
        ]
        return draw(self.views, self.solution, titles)

    def summary(self) -> dict[str, Any]:
        """All figures, for programs."""
        solution, (width, height) = self.solution, self.views.size
        return {
            "good": self.is_good,
            "problems": self.problems,
            "advice": self.assessment.advice,
            "model": solution.lenses[0].model,
            "pattern": str(self.views.pattern),
            "square_mm": self.views.pattern.square_mm,
            "image_width": width,
            "image_height": height,
            "pairs_used": len(solution.pairs),
            "epipolar_rms_px": solution.epipolar_rms,
            "baseline_mm": 1000 * self.baseline_m,
            "tilt_deg": self.assessment.tilt_deg,
            "cameras": {side: self._camera(index) for index, side in enumerate(SIDES)},
            "pairs": [self._pair(view) for view in self.views.views],
        }

    def _camera(self, side: int) -> dict[str, Any]:
        lens = self.solution.lenses[side]
        return {
            "views_used": len(self.solution.single[side]),
            "reprojection_rms_px": self.solution.reprojection_rms[side],
            "focal_px": [float(lens.matrix[0, 0]), float(lens.matrix[1, 1])],
            "principal_point_px": [float(lens.matrix[0, 2]), float(lens.matrix[1, 2])],
            "distortion": lens.distortion.ravel().tolist(),
            "field_of_view_deg": list(lens.field_of_view(self.views.size)),
            "coverage": self.assessment.coverage[side],
        }

    def _pair(self, view: View) -> dict[str, Any]:
        used_by = [side for index, side in enumerate(SIDES) if view.name in self.solution.reprojection[index]]
        return {
            "name": view.name,
            "used": view in self.solution.pairs,
            "used_by": used_by,
            "reason": view.reason,
            "reprojection_px": {
                side: self.solution.reprojection[SIDES.index(side)][view.name] for side in used_by
            },
            "epipolar_px": self.solution.epipolar.get(view.name),
        }

    def text(self) -> str:
        """The report in plain words."""
        solution, assessment = self.solution, self.assessment
        fields = [lens.field_of_view(self.views.size) for lens in solution.lenses]
        focal = [lens.matrix[0, 0] for lens in solution.lenses]
        lines = [
            f"Pairs: {len(solution.pairs)} of {len(self.views.views)} used.",
            *(f"  {line}" for line in self._unused()),
            f"Reprojection error: {solution.reprojection_rms[0]:.2f} px left, "
            f"{solution.reprojection_rms[1]:.2f} px right (RMS).",
            f"Epipolar error: {solution.epipolar_rms:.2f} px (RMS of vertical distances after rectifying).",
            f"Baseline: {1000 * self.baseline_m:.1f} mm.",
            f"Focal length: {focal[0]:.1f} px left, {focal[1]:.1f} px right.",
            f"Field of view: {fields[0][0]:.0f}° × {fields[0][1]:.0f}° left, "
            f"{fields[1][0]:.0f}° × {fields[1][1]:.0f}° right.",
            f"Corners cover {100 * assessment.coverage[0]:.0f} % of the left image and "
            f"{100 * assessment.coverage[1]:.0f} % of the right one; the boards differ by up to "
            f"{assessment.tilt_deg:.0f}° in tilt.",
        ]
        if assessment.advice:
            lines += ["To improve it:", *(f"  {each}" for each in assessment.advice)]
        lines += ["This calibration is good."] if self.is_good else ["This calibration is bad:"]
        return "\n".join([*lines, *(f"  {each}" for each in self.problems)])

    def _unused(self) -> list[str]:
        """Why pairs were not used; pairs with one reason share a line."""
        by_reason: dict[str, list[str]] = {}
        for view in self.views.views:
            if view not in self.solution.pairs:
                helped = [
                    side for index, side in enumerate(SIDES) if view.name in self.solution.reprojection[index]
                ]
                end = f" (used for the {helped[0]} camera only)" if len(helped) == 1 else ""
                by_reason.setdefault(f"{view.reason or 'left out'}{end}", []).append(view.name)
        return [f"{_shortened(names)}: {reason}." for reason, names in by_reason.items()]


def _shortened(names: list[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
