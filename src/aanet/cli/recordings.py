"""ROS recordings in `aanet predict`: options, the calibration in them, and frames without partners."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.calibration import open_calibration
from aanet.cli.console import sentence
from aanet.errors import AanetError, InputError
from aanet.io.topics import printable

if TYPE_CHECKING:
    from aanet.geometry.rectification import Calibration
    from aanet.io.bags import StereoBag
    from aanet.io.pairs import Pairs

RECORDINGS = "ROS recordings"  # title under which the help groups these options

LeftTopic = Annotated[
    str | None,
    typer.Option(
        "--left",
        metavar="TOPIC",
        help="Topic of the left images, if it is not found by its name.",
        show_default=False,
        rich_help_panel=RECORDINGS,
    ),
]
RightTopic = Annotated[
    str | None,
    typer.Option(
        "--right",
        metavar="TOPIC",
        help="Topic of the right images.",
        show_default=False,
        rich_help_panel=RECORDINGS,
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        help="Largest difference between the time stamps of a pair.",
        rich_help_panel=RECORDINGS,
    ),
]


def both_topics(left: str | None, right: str | None) -> tuple[str, str] | None:
    """The topics that --left and --right name, or None without them."""
    if left is None and right is None:
        return None
    if left is None or right is None:
        raise InputError("The topics of both cameras are needed: give --left TOPIC --right TOPIC.")
    return left, right


def calibration_of(
    pairs: Pairs, path: Path | None, right_path: Path | None, unit: str | None, rectified: bool, resized: bool
) -> Calibration | None:
    """The calibration that the options describe, or else the camera_info in a recording."""
    from aanet.io.bags import StereoBag

    if path is not None or right_path is not None or not isinstance(pairs.video, StereoBag):
        return open_calibration(path, right_path, unit, rectified, resized)
    bag, calibration, unused = pairs.video, None, ""
    try:
        calibration = _recorded_calibration(bag, unit, rectified, resized)
    except AanetError as error:  # disparities need no calibration
        unused = f", because their camera_info cannot be used: {sentence(error).rstrip('.')}"
    state = f"without a calibration{unused}" if calibration is None else "with their camera_info"
    print(f"aanet: Matching {' with '.join(map(printable, bag.topics))}, {state}.", file=sys.stderr)
    return calibration


def _recorded_calibration(
    bag: StereoBag, unit: str | None, rectified: bool, resized: bool
) -> Calibration | None:
    if bag.camera_info is None:
        return None
    from aanet.geometry.calibration import parse_calibration

    return parse_calibration(
        *bag.camera_info,
        names=bag.camera_info_topics,
        unit=unit,
        rectified=rectified or bag.rectified,
        resized=resized,
    )


def report_lost_frames(pairs: Pairs) -> int:
    """Tell how many frames of a recording had no partner, and return their number."""
    from aanet.io.bags import StereoBag

    if not isinstance(pairs.video, StereoBag) or not pairs.video.lost:
        return 0
    bag = pairs.video
    frames, skipped = ("1 frame", "is skipped") if bag.lost == 1 else (f"{bag.lost} frames", "are skipped")
    print(
        f"aanet: {frames} without a partner within {bag.tolerance:g} s {skipped}: {bag.unmatched[0]} …",
        file=sys.stderr,
    )
    return bag.lost
