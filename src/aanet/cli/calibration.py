"""The options that describe a calibration, for commands that take one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.geometry.rectification import Calibration

CALIBRATION = "Calibration"  # title under which the help groups these options

Calib = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Calibration file of KITTI, Middlebury, OpenCV, ROS or Kalibr, NPZ, or JSON; required for depth "
        "and points. Raw pairs are rectified with it.",
        rich_help_panel=CALIBRATION,
    ),
]
CalibRight = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Second calibration file: that of the right camera (ROS), or the extrinsics (OpenCV).",
        rich_help_panel=CALIBRATION,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="mm|cm|m",
        help="Unit of the lengths in the calibration file, which is that of the chessboard's squares.",
        show_default="m",
        rich_help_panel=CALIBRATION,
    ),
]
Rectified = Annotated[
    bool,
    typer.Option(
        "--rectified",
        help="The images are already rectified; for calibration files that describe raw images too.",
        rich_help_panel=CALIBRATION,
    ),
]
Resized = Annotated[
    bool,
    typer.Option(
        "--resized",
        help="The images may have been resized, but not cropped, since the calibration, which is scaled.",
        rich_help_panel=CALIBRATION,
    ),
]


def open_calibration(
    path: Path | None, right_path: Path | None, unit: str | None, rectified: bool, resized: bool
) -> Calibration | None:
    """Read the calibration that these options describe; None without them."""
    if path is None:
        if right_path is not None or unit is not None or rectified or resized:
            raise InputError(
                "--calib-right, --unit, --rectified and --resized need a calibration: give --calib FILE."
            )
        return None
    from aanet.geometry.calibration import load_calibration

    return load_calibration(path, right_path, unit=unit, rectified=rectified, resized=resized)
