"""`aanet predict`: match pairs of images and write the results."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet import outputs
from aanet.cli.calibration import Calib, CalibRight, Rectified, Resized, Unit
from aanet.cli.console import progress_bar, sentence, status
from aanet.cli.options import (
    ANY_MODEL,
    MATCHING,
    Device,
    Engine,
    JsonOutput,
    MaxDisparity,
    Overwrite,
    Postprocess,
    Precision,
    Scale,
    Threads,
    Tile,
    refuse_existing,
)
from aanet.cli.recordings import (
    LeftTopic,
    RightTopic,
    Tolerance,
    both_topics,
    calibration_of,
    report_lost_frames,
)
from aanet.errors import AanetError, InputError, WriteError

if TYPE_CHECKING:
    from aanet.geometry.rectification import Calibration
    from aanet.inference.options import MatchOptions
    from aanet.io.pairs import Pair, Pairs
    from aanet.matcher import StereoMatcher

_SHOWN_WARNINGS = 20  # at most, because there may be thousands of pairs; --json lists all warnings


def predict(
    left: Annotated[
        str,
        typer.Argument(
            help="Left image, folder of left images, quoted pattern or video. Without a right side: a folder "
            "of both sides, a CSV file with the columns left and right, a side-by-side image or video, or a "
            "ROS recording (.bag, .mcap, .db3 or folder)."
        ),
    ],
    right: Annotated[
        str | None, typer.Argument(help="Right image, folder, pattern or video.", show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the results.")
    ] = Path("out"),
    save: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Comma-separated outputs. A suffix selects a format other than the first one, as in "
            "disparity.pfm or depth.npy.\n\n" + "\n\n".join(outputs.describe("--calib", "--check")),
        ),
    ] = "disparity,color",
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip pairs whose output files already exist.")
    ] = False,
    overwrite: Overwrite = False,
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
) -> None:
    """Match pairs of images and write disparity, depth, point clouds or pictures.

    Pairs must be rectified, or be given with a calibration that describes how to rectify them. A pair that
    cannot be matched is reported and skipped, and the exit code is then 2.

    Example: aanet predict left.png right.png --calib stereo.yml --save ply -o out
    """
    from aanet.inference.options import MatchOptions
    from aanet.io.pairs import find_pairs

    pairs = find_pairs(left, right, topics=both_topics(left_topic, right_topic), tolerance=tolerance)
    calibration = calibration_of(pairs, calib, calib_right, unit, rectified, resized)
    wanted = _outputs(save, calibration is not None, check)
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
    job = _Job(matcher, output, wanted, calibration, resume, overwrite, options)
    summary = _run(job, pairs)
    _report(summary, matcher, output, as_json)
    if summary.interrupted:
        raise typer.Exit(130)
    if summary.failed:
        raise typer.Exit(2)


@dataclass(frozen=True)
class _Job:
    """What to do with every pair."""

    matcher: StereoMatcher
    folder: Path
    outputs: list[str]
    calibration: Calibration | None
    resume: bool
    overwrite: bool
    options: MatchOptions

    def files(self, pair: Pair) -> list[Path]:
        names = [outputs.find(output).file_name for output in self.outputs]
        return [self.folder / f"{pair.name}_{name}" for name in names]

    def run(self, pair: Pair) -> _Done:
        if self.resume and all(file.is_file() for file in self.files(pair)):
            return _Done(pair.name, skipped=True)
        if not self.resume:
            refuse_existing(self.overwrite, *self.files(pair))
        result = self.matcher(*pair.load(), calibration=self.calibration, options=self.options)
        files = result.save(self.folder, *self.outputs, name=pair.name)
        return _Done(
            pair.name,
            [str(file) for file in files],
            result.seconds,
            warnings=result.warnings,
            notes=result.notes,
            time=pair.time,
            camera=None if result.camera is None else asdict(result.camera),
        )


@dataclass
class _Done:
    """The outcome of one pair."""

    name: str
    files: list[str] = field(default_factory=list)
    matching_seconds: float = 0.0
    wall_seconds: float = 0.0  # with reading, checking and saving
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    time: float | None = None  # of a frame, in seconds since the beginning; the time stamp of a recording
    camera: dict[str, float | None] | None = None  # of the rectified pair
    error: str | None = None
    skipped: bool = False


@dataclass
class _Summary:
    """The outcome of all pairs."""

    pairs: list[_Done] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    lost: int = 0  # frames of a recording without a partner
    wall_seconds: float = 0.0
    error: str | None = None  # of the source of the pairs
    interrupted: bool = False

    @property
    def failed(self) -> int:
        pairs = sum(pair.error is not None for pair in self.pairs)
        return pairs + (self.lost or len(self.unmatched)) + (self.error is not None)


def _run(job: _Job, pairs: Pairs) -> _Summary:
    """Match all pairs; on Ctrl-C, the outcome of those that are finished is returned."""
    summary, warnings = _Summary(unmatched=pairs.unmatched), 0
    for file in pairs.unmatched:
        print(f"aanet: {file} has no partner and is skipped.", file=sys.stderr)
    with progress_bar("Matching", pairs.total) as advance:
        start = before = time.perf_counter()
        try:
            for done in _outcomes(job, pairs):
                done.wall_seconds, before = time.perf_counter() - before, time.perf_counter()
                summary.pairs.append(done)
                for line in _lines(done, warnings):
                    print(line, file=sys.stderr)
                warnings += len(done.warnings)
                advance()
        except _SourceError as error:
            summary.error = str(error)
            print(f"aanet: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            summary.interrupted = True
    summary.lost = report_lost_frames(pairs)
    summary.wall_seconds = time.perf_counter() - start
    return summary


class _SourceError(Exception):
    """The frames ended where they should not."""


def _outcomes(job: _Job, pairs: Pairs) -> Iterator[_Done]:
    """Match the pairs one after the other."""
    frames = iter(pairs)
    while True:
        try:
            pair = next(frames, None)
        except AanetError as error:
            raise _SourceError(sentence(error)) from error
        if pair is None:
            return
        yield job.run(pair) if pairs.total == 1 else _attempt(job, pair)


def _attempt(job: _Job, pair: Pair) -> _Done:
    """Match one pair of several; an unusable pair does not stop the others, a failure to write does."""
    try:
        return job.run(pair)
    except WriteError:
        raise
    except AanetError as error:
        return _Done(pair.name, error=sentence(error), time=pair.time)


def _lines(done: _Done, earlier_warnings: int) -> list[str]:
    if done.error is not None:
        return [f"aanet: {done.name} is skipped: {done.error}"]
    if earlier_warnings >= _SHOWN_WARNINGS:
        return []
    return [f"{done.name}: {warning}" for warning in done.warnings]


def _report(summary: _Summary, matcher: StereoMatcher, folder: Path, as_json: bool) -> None:
    matched = [pair for pair in summary.pairs if pair.error is None and not pair.skipped]
    if as_json:
        facts = {"model": matcher.spec.name, "engine": matcher.engine.description, "output": str(folder)}
        print(json.dumps({**facts, **asdict(summary), "failed": summary.failed}, indent=2))
        return
    skipped = sum(pair.skipped for pair in summary.pairs)
    parts = [f"{len(matched)} matched"]
    parts += [f"{skipped} existed already"] if skipped else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    if matched:
        matching, wall = (
            sum(seconds) / len(matched)
            for seconds in zip(*((pair.matching_seconds, pair.wall_seconds) for pair in matched), strict=True)
        )
        parts.append(f"{matching:.2f} s each, {wall:.2f} s with reading and saving")
    print(f"{folder}: {', '.join(parts)} ({matcher.spec.name}; {matcher.engine.description})")
    if summary.interrupted:
        print("Interrupted; finished pairs are kept, and --resume continues with the others.")


def _outputs(save: str, has_camera: bool, check: bool) -> list[str]:
    """The requested outputs, checked before any work is done."""
    wanted = [word.strip() for word in save.split(",") if word.strip()]
    if not wanted:
        raise InputError("There is nothing to save: --save is empty.")
    for output in wanted:
        outputs.require(output, has_camera, check)
    return wanted
