"""`aanet predict`: match pairs of images and write the results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet import outputs
from aanet.cli.console import status
from aanet.cli.options import (
    ANY_MODEL,
    MATCHING,
    ColorScale,
    Device,
    Engine,
    FlyingPixels,
    Fps,
    Frames,
    JsonOutput,
    MaxDepth,
    MaxDisparity,
    MinConfidence,
    Overwrite,
    Postprocess,
    Precision,
    Scale,
    Temporal,
    Threads,
    Tile,
)
from aanet.cli.prediction_job import Job, color_range, report, run, video_files
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.geometry.rectification import Calibration

CALIBRATION = "Calibration"  # title under which the help groups options


def predict(
    left: Annotated[
        str,
        typer.Argument(
            help="Left image, folder of left images, quoted pattern, video, camera (0, /dev/video0) or URL "
            "of a stream. Without a right side: a folder of both sides, a CSV file with the columns left and "
            "right, or an image, video, camera or stream with both views side by side."
        ),
    ],
    right: Annotated[
        str | None,
        typer.Argument(help="Right image, folder, pattern, video, camera or stream.", show_default=False),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the results.")
    ] = Path("out"),
    save: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Comma-separated outputs. A suffix selects a format other than the first one, as in "
            "disparity.pfm or depth.npy; color.mp4, depth_color.mp4 and panel.mp4 are videos.\n\n"
            + "\n\n".join(outputs.describe("--calib", "--check")),
        ),
    ] = "disparity,color",
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip pairs whose output files already exist.")
    ] = False,
    overwrite: Overwrite = False,
    min_confidence: MinConfidence = 0.0,
    max_depth: MaxDepth = None,
    flying_pixels: FlyingPixels = False,
    colors: ColorScale = "auto",
    temporal: Temporal = None,
    frames: Frames = None,
    fps: Fps = None,
    as_json: JsonOutput = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help=ANY_MODEL,
            show_default="aanet",
            rich_help_panel=MATCHING,
        ),
    ] = None,
    max_disparity: MaxDisparity = None,
    scale: Scale = None,
    tile: Tile = "auto",
    postprocess: Postprocess = "auto",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Also match from right to left, and mark pixels that fail the left-right check as occluded.",
            rich_help_panel=MATCHING,
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse a pair if an input check warns of it, for instance because it is not rectified.",
            rich_help_panel=MATCHING,
        ),
    ] = False,
    calib: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Calibration file; required for depth and points. Unrectified pairs are rectified with it.",
            rich_help_panel=CALIBRATION,
        ),
    ] = None,
    calib_right: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Calibration file of the right camera, if --calib describes the left one only (ROS).",
            rich_help_panel=CALIBRATION,
        ),
    ] = None,
    meters_per_unit: Annotated[
        float,
        typer.Option(
            metavar="METERS",
            help="Length unit of the calibration file: 0.001 if its translation is in millimeters.",
            rich_help_panel=CALIBRATION,
        ),
    ] = 1.0,
    engine: Engine = None,
    precision: Precision = "auto",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Match pairs of images and write disparity, depth, point clouds or pictures.

    Pairs must be rectified, or be given with a calibration that describes how to rectify them. A pair that
    cannot be matched is reported and skipped, and the exit code is then 2.

    Example: aanet predict left.png right.png --calib stereo.yml --save ply -o out
    """
    wanted = _outputs(save, calib is not None, check)
    from aanet.inference.options import MatchOptions
    from aanet.inference.save_options import SaveOptions
    from aanet.inference.temporal import TemporalFilter
    from aanet.io.pairs import find_pairs

    limits = {} if max_depth is None else {"max_depth": max_depth}
    fixed = None if colors in ("auto", "each", "all") else colors
    saving = SaveOptions(min_confidence=min_confidence, flying_pixels=flying_pixels, range=fixed, **limits)
    average = None if temporal is None else TemporalFilter(temporal)
    pairs = find_pairs(left, right)
    if average is not None and pairs.video is None:
        raise InputError("--temporal needs the frames of a video, camera or stream; these are still pairs.")
    videos = video_files(output, wanted, pairs, fps, resume, overwrite)
    options = MatchOptions.of(
        None,
        {
            "scale": "auto" if scale is None else scale,
            "check": check,
            "tile": tile,
            "postprocess": postprocess,
            "strict": strict,
        },
    )
    calibration = _calibration(calib, calib_right, meters_per_unit)
    with status("Opening the model; the first time, it is converted"):
        from aanet.matcher import StereoMatcher

        matcher = StereoMatcher(
            model,
            engine=engine,
            precision=precision,
            max_disparity=max_disparity,
            device=device,
            threads=threads,
        )
    job = Job(matcher, output, wanted, calibration, resume, overwrite, options, saving, videos, average)
    if colors == "all" or (colors == "auto" and pairs.video is not None):
        job = replace(job, saving=replace(saving, range=color_range(job, pairs)))
    summary = run(job, pairs, frames)
    report(summary, matcher, output, as_json)
    if summary.interrupted:
        raise typer.Exit(130)
    if summary.failed:
        raise typer.Exit(2)


def _outputs(save: str, has_camera: bool, check: bool) -> list[str]:
    """The requested outputs, checked before any work is done."""
    wanted = [word.strip() for word in save.split(",") if word.strip()]
    if not wanted:
        raise InputError("There is nothing to save: --save is empty.")
    for output in wanted:
        needs = outputs.find_output(output).needs  # raises an error for an unknown output
        if needs == "camera" and not has_camera:
            raise InputError(f"Saving {output} needs a calibration: give --calib FILE.")
        if needs == "check" and not check:
            raise InputError(f"Saving {output} needs the left-right check: give --check.")
    return wanted


def _calibration(path: Path | None, right_path: Path | None, meters_per_unit: float) -> Calibration | None:
    if path is None:
        if right_path is not None or meters_per_unit != 1:
            raise InputError("--calib-right and --meters-per-unit need a calibration: give --calib FILE.")
        return None
    from aanet.geometry.calibration import load_calibration

    return load_calibration(path, right_path, meters_per_unit=meters_per_unit)
