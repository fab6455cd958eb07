"""`aanet predict`: match pairs of images and write the results."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from aanet import outputs
from aanet.cli import on_ray
from aanet.cli.calibration import Calib, CalibRight, Rectified, Resized, Unit, open_calibration
from aanet.cli.console import status
from aanet.cli.json_lines import STDOUT, JsonLines, open_json_lines
from aanet.cli.matching import MatcherOptions, match_options
from aanet.cli.on_ray import RayAddress, Workers
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
    NetworkSpec,
    Overwrite,
    Postprocess,
    Precision,
    Scale,
    Temporal,
    Threads,
    Tile,
)
from aanet.cli.prediction_job import Job, color_range, report, run, video_files
from aanet.cli.recordings import LeftTopic, RightTopic, Tolerance, both_topics, calibration_of
from aanet.errors import InputError
from aanet.io.atomic import remove_leftovers
from aanet.models.weights import files


def predict(
    left: Annotated[
        str,
        typer.Argument(
            help="Left image, folder of left images, quoted pattern, video, camera (0, /dev/video0) or URL "
            "of a stream. Without a right side: a folder of both sides, a CSV file with the columns left and "
            "right, an image, video, camera or stream with both views side by side, or a ROS recording "
            "(.bag, .mcap, .db3 or folder)."
        ),
    ],
    right: Annotated[
        str | None,
        typer.Argument(help="Right image, folder, pattern, video, camera or stream.", show_default=False),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Folder for the results; with --ray also a URL."
        ),
    ] = "out",
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
    jsonl: JsonLines = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Match the I-th of N parts of a list of still pairs, such as 3/100, so that N processes or "
            "computers share it.",
            show_default="all pairs",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help=ANY_MODEL,
            show_default=files.DEFAULT,
            rich_help_panel=MATCHING,
        ),
    ] = None,
    network_spec: NetworkSpec = None,
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
    calib: Calib = None,
    calib_right: CalibRight = None,
    unit: Unit = None,
    rectified: Rectified = False,
    resized: Resized = False,
    left_topic: LeftTopic = None,
    right_topic: RightTopic = None,
    tolerance: Tolerance = 0.01,
    engine: Engine = None,
    precision: Precision = "auto",
    device: Device = None,
    threads: Threads = None,
    ray: RayAddress = None,
    workers: Workers = None,
) -> None:
    """Match pairs of images and write disparity, depth, point clouds or pictures.

    Pairs must be rectified, or be given with a calibration that describes how to rectify them. A pair that
    cannot be matched is reported and skipped, and the exit code is then 2.

    With --ray, a list of still pairs is matched on a cluster; paths and URLs must be reachable for all of its
    nodes. A manifest in Parquet files gets a row for each pair.

    Example: aanet predict left.png right.png --calib stereo.yml --save ply -o out
    """
    from aanet.inference.save_options import SaveOptions
    from aanet.inference.temporal import TemporalFilter
    from aanet.io.pairs import find_pairs
    from aanet.io.storage import Folder
    from aanet.prediction.work import Work

    limits = {} if max_depth is None else {"max_depth": max_depth}
    fixed = None if colors in ("auto", "each", "all") else colors
    saving = SaveOptions(min_confidence=min_confidence, flying_pixels=flying_pixels, range=fixed, **limits)
    average = None if temporal is None else TemporalFilter(temporal)
    options = match_options(scale, tile, postprocess, check=check, strict=strict)
    opening = MatcherOptions(engine, precision, max_disparity, device, threads, network_spec)
    if ray is not None:
        unshared = {"--jsonl": jsonl, "--shard": shard, "--frames": frames, "--fps": fps}
        unshared |= {"--temporal": temporal, "--left": left_topic, "--right": right_topic}
        on_ray.refuse({**unshared, "--range all": True if colors == "all" else None})
        calibration = open_calibration(calib, calib_right, unit, rectified, resized)
        wanted = _outputs(save, calibration is not None, check)
        settings = (
            opening.arguments(model),
            output,
            tuple(wanted),
            calibration,
            options,
            saving,
            threads or 1,
        )
        on_ray.predict_list(left, right, settings, ray, workers, resume, overwrite, as_json)
        return
    folder = on_ray.local_output(output)
    if as_json and jsonl == STDOUT:
        raise InputError("--json and --jsonl - both write to stdout; give --jsonl the name of a file.")
    pairs = find_pairs(left, right, topics=both_topics(left_topic, right_topic), tolerance=tolerance)
    if shard is not None:
        pairs = pairs.shard(*parse_shard(shard))
    calibration = calibration_of(pairs, calib, calib_right, unit, rectified, resized)
    wanted = _outputs(save, calibration is not None, check)
    if average is not None and pairs.video is None:
        raise InputError(
            "--temporal needs the frames of a video, camera, stream or recording; these are still pairs."
        )
    videos = video_files(folder, wanted, pairs, fps, resume, overwrite)
    with status("Opening the model; the first time, it is converted"):
        matcher = opening.open(model)
    if resume:
        remove_leftovers(folder)  # also if all results are there and nothing will be written
    stills = tuple(each for each in wanted if not each.endswith(outputs.VIDEO_SUFFIX))
    # Another process may have written the files meanwhile.
    work = Work(matcher, Folder(folder), stills, calibration, options, saving, overwrite or resume)
    if colors == "all" or (colors == "auto" and pairs.video is not None):
        work = replace(work, saving=replace(saving, range=color_range(work, wanted, pairs)))
    with open_json_lines(jsonl, resume, overwrite) as lines:
        job = Job(work, folder, resume, overwrite, videos, average)
        summary = run(job, pairs, frames, listed=as_json, lines=lines)
    report(summary, matcher, folder, as_json, sys.stderr if jsonl == STDOUT else sys.stdout)
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
        outputs.require(output, has_camera, check)
    return wanted


def parse_shard(text: str) -> tuple[int, int]:
    """The number of a shard, from 1, and the number of all."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise InputError(f"A shard is given as I/N with I from 1 to N, such as 3/100; got {text[:30]!r}.")
    return int(number), int(count)
