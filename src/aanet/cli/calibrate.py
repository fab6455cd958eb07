"""`aanet calibrate`: calibrate a stereo rig from photographs of a board; and the board to print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from aanet.cli.console import status, track
from aanet.cli.options import JsonOutput, Overwrite, refuse_existing
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.io.pairs import Pairs
    from aanet.rig.lens import Model

BOARD = "Board"  # title under which the help groups options

PatternOption = Annotated[
    str,
    typer.Option(
        "--pattern",
        metavar="KIND:CxR",
        help="chessboard:9x6 counts inner corners, charuco:5x7 counts squares.",
        rich_help_panel=BOARD,
    ),
]
Square = Annotated[
    float, typer.Option(metavar="MM", help="Side of a square in millimeters.", rich_help_panel=BOARD)
]
Marker = Annotated[
    float | None,
    typer.Option(
        metavar="MM",
        help="Side of a marker of a charuco board in millimeters.",
        show_default="three quarters of the square",
        rich_help_panel=BOARD,
    ),
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="OpenCV's dictionary of the markers of a charuco board, such as 4x4_50 or apriltag_36h11.",
        show_default="4x4_50",
        rich_help_panel=BOARD,
    ),
]


def calibrate(
    left: Annotated[
        str,
        typer.Argument(
            help="Folder of left images, quoted pattern or video; a single folder or video of both sides."
        ),
    ],
    right: Annotated[
        str | None, typer.Argument(help="Folder of right images, pattern or video.", show_default=False)
    ] = None,
    *,
    pattern: PatternOption,
    square: Square,
    marker: Marker = None,
    dictionary: Dictionary = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Calibration to write (.yaml); the picture is beside it."
        ),
    ] = Path("rig.yaml"),
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", help="Each image or frame shows both views, the left one first.")
    ] = False,
    model: Annotated[
        str,
        typer.Option(
            metavar="pinhole|fisheye", help="Model of the lenses; fisheye is that of Kannala–Brandt."
        ),
    ] = "pinhole",
    force: Annotated[bool, typer.Option("--force", help="Write the calibration even if it is bad.")] = False,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
) -> None:
    """Calibrate a stereo rig from photographs of a board, for predict --calib.

    Move and tilt the board in front of both cameras, about 15 pairs in all parts of the images. A view of one
    camera only still helps that camera, and outliers are left out. The exit code is 1 if the calibration is
    bad, and the file is then written only with --force. aanet calibrate board makes a board to print.

    Example: aanet calibrate left right --pattern chessboard:9x6 --square 25 -o rig.yaml
    """
    if output.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"The calibration is written as .yaml or .yml; got {output}.")
    picture = output.with_suffix(".png")
    refuse_existing(overwrite, output, picture)
    with status("Loading OpenCV"):
        from aanet.rig.calibrate import calibrate as calibrate_rig
        from aanet.rig.pattern import Pattern

    board = Pattern.parse(pattern, square, marker, dictionary)
    rig = calibrate_rig(_pairs(left, right, side_by_side), board, model=cast("Model", model))
    written = [picture]
    rig.save_picture(picture)
    if rig.is_good or force:
        rig.save(output, force=True)
        written.insert(0, output)
    if as_json:
        print(json.dumps({**rig.summary(), "files": [str(file) for file in written]}, indent=2))
    else:
        print(rig.text())
        print(f"Wrote {' and '.join(str(file) for file in written)}.")
        if output not in written:
            print(f"{output} was not written; --force writes it nevertheless.")
    if not rig.is_good:
        raise typer.Exit(1)


def calibrate_board(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="PDF to write.")] = Path(
        "board.pdf"
    ),
    paper: Annotated[str, typer.Option(metavar="a4|letter", help="Size of the paper.")] = "a4",
    overwrite: Overwrite = False,
    pattern: PatternOption = "chessboard:9x6",
    square: Square = 25.0,
    marker: Marker = None,
    dictionary: Dictionary = None,
) -> None:
    """Write a calibration board as PDF, to print at true size.

    A ruler on the page shows whether the printer has changed the size. A board that does not fit on the paper
    is refused.

    Example: aanet calibrate board --pattern chessboard:9x6 --square 25 -o board.pdf
    """
    refuse_existing(overwrite, output)
    from aanet.io.atomic import write_bytes
    from aanet.rig.board import board_pdf
    from aanet.rig.pattern import Pattern

    write_bytes(output, board_pdf(Pattern.parse(pattern, square, marker, dictionary), paper.lower()))
    print(f"Wrote {output}. Print it at 100 % (actual size) and check the ruler.")


def _pairs(left: str, right: str | None, side_by_side: bool) -> Pairs:
    """The pairs of the arguments, with a progress bar."""
    from aanet.io.pairs import Pairs, find_pairs, find_side_by_side

    if side_by_side and right is not None:
        raise InputError("With --side-by-side, one folder or video has both sides; leave out the second one.")
    found = find_side_by_side(left) if side_by_side else find_pairs(left, right)
    return Pairs(lambda: track(found, "Finding the board", found.total), found.total, found.unmatched)
