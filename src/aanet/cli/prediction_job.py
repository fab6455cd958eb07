"""The work of `aanet predict`: match pairs or frames, write files and videos, and report."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aanet import outputs
from aanet.cli.console import progress_bar, sentence
from aanet.cli.options import refuse_existing
from aanet.cli.recordings import report_lost_frames
from aanet.errors import AanetError, ReadError, WriteError

if TYPE_CHECKING:
    from aanet.geometry.rectification import Calibration
    from aanet.inference.options import MatchOptions
    from aanet.inference.save_options import SaveOptions
    from aanet.inference.temporal import TemporalFilter
    from aanet.io.pairs import Pair, Pairs
    from aanet.io.video import VideoFile
    from aanet.matcher import StereoMatcher
    from aanet.result import StereoResult
    from aanet.viz import ColorRange

_SHOWN_WARNINGS = 20  # at most, because there may be thousands of pairs; --json lists all warnings
_LISTED_FRAMES = 1000  # of a video, with warnings or errors, so that the memory for hours of it is bounded
_DEFAULT_FPS = 10.0
_SAMPLE = 5  # pairs that determine the color range of all
_MARGIN = 0.25  # by which the range of a single frame is widened on either side


@dataclass(frozen=True)
class Job:
    """What to do with every pair."""

    matcher: StereoMatcher
    folder: Path
    outputs: list[str]  # with the videos
    calibration: Calibration | None
    resume: bool
    overwrite: bool
    options: MatchOptions
    saving: SaveOptions
    videos: dict[str, VideoFile]  # by output
    average: TemporalFilter | None

    @property
    def still_outputs(self) -> list[str]:
        """The outputs that are files of single pairs."""
        return [output for output in self.outputs if not output.endswith(outputs.VIDEO_SUFFIX)]

    def files(self, pair: Pair) -> list[Path]:
        """The files of one pair."""
        names = [outputs.find(output).file_name for output in self.still_outputs]
        return [self.folder / f"{pair.name}_{name}" for name in names]

    def run(self, pair: Pair) -> Done:
        """Match one pair and write its files and frames."""
        files, videos = self.files(pair), self.videos.values()
        if self.resume and all(file.is_file() for file in files) and all(each.has_next for each in videos):
            for video in videos:
                video.reuse()
            return Done(pair.name, skipped=True, time=pair.time)
        if not self.resume:
            refuse_existing(self.overwrite, *files)
        result = self.matcher(*pair.load(), calibration=self.calibration, options=self.options)
        result.time = pair.time
        if self.average is not None:
            result.disparity = self.average(result.disparity)
        if files:
            options = {name: getattr(self.saving, name) for name in self.saving.__dataclass_fields__}
            # Another process may have written the files meanwhile.
            replaced = self.overwrite or self.resume
            files = result.save(
                self.folder, *self.still_outputs, name=pair.name, overwrite=replaced, **options
            )
        self._write_frames(result)
        return Done(
            pair.name,
            [str(file) for file in files],
            result.seconds,
            warnings=result.warnings,
            notes=result.notes,
            camera=None if result.camera is None else asdict(result.camera),
            time=pair.time,
            processing=None if result.processing is None else result.processing.as_dict(),
        )

    def _write_frames(self, result: StereoResult) -> None:
        for output, video in self.videos.items():
            if video.has_next:
                video.reuse()
                continue
            picture = outputs.find_output(output).picture
            assert picture is not None
            video.write(picture(result, self.saving))


@dataclass
class Done:
    """The outcome of one pair."""

    name: str
    files: list[str] = field(default_factory=list)
    matching_seconds: float = 0.0
    wall_seconds: float = 0.0  # with reading, checking and saving
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    camera: dict[str, float | None] | None = None  # of the rectified pair
    error: str | None = None
    skipped: bool = False
    time: float | None = None  # of a frame, in seconds since the beginning; the time stamp of a recording
    processing: dict[str, Any] | None = None  # what was done to the images and to the disparity


@dataclass
class Summary:
    """The outcome of all pairs; of a video, only frames with warnings or errors are listed."""

    pairs: list[Done] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    videos: list[str] = field(default_factory=list)
    matched: int = 0
    skipped: int = 0
    failed: int = 0
    matching_seconds: float = 0.0  # of the matched pairs, and likewise:
    pair_seconds: float = 0.0  # with reading, checking and saving
    wall_seconds: float = 0.0
    error: str | None = None  # of the source of the frames
    interrupted: bool = False

    def add(self, done: Done, of_video: bool) -> None:
        """Count a pair, and list it."""
        self.failed += done.error is not None
        self.skipped += done.skipped
        if done.error is None and not done.skipped:
            self.matched += 1
            self.matching_seconds += done.matching_seconds
            self.pair_seconds += done.wall_seconds
        noteworthy = done.error is not None or done.warnings
        if not of_video or (noteworthy and len(self.pairs) < _LISTED_FRAMES):
            self.pairs.append(done)


def video_files(
    folder: Path, wanted: list[str], pairs: Pairs, fps: float | None, resume: bool, overwrite: bool
) -> dict[str, VideoFile]:
    """The videos to write, by output; complete ones are refused, or left as they are when resuming."""
    from aanet.io.video import VideoFile

    videos = {}
    rate = fps or (pairs.video.fps if pairs.video is not None else None) or _DEFAULT_FPS
    for output in wanted:
        path = folder / f"{pairs.name}_{output}"
        if output.endswith(outputs.VIDEO_SUFFIX) and not (resume and path.is_file()):
            refuse_existing(overwrite, path)
            videos[output] = VideoFile(path, rate, resume)
    return videos


def color_range(job: Job, pairs: Pairs) -> ColorRange | None:
    """One range of colors for all pairs, from a sample of them; None if no output has colors."""
    if all(outputs.find_output(output).picture is None for output in job.outputs):
        return None
    from aanet.viz import ColorRange, value_range

    options = replace(job.options, check=False, inspect=False, strict=False)
    ranges = []
    for left, right in pairs.sample(_SAMPLE):
        with contextlib.suppress(AanetError):  # reported when it is the pair's turn
            result = job.matcher(left, right, calibration=job.calibration, options=options)
            ranges.append(value_range(result.disparity))
    if not ranges:
        return None
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    margin = _MARGIN * (high - low) if len(ranges) == 1 else 0.0
    return ColorRange(max(low - margin, 0.0), max(high + margin, 1e-3))


def run(job: Job, pairs: Pairs, limit: int | None) -> Summary:
    """Match all pairs; on Ctrl-C, the outcome of those that are finished is returned."""
    from aanet.io.frames import StereoVideo

    summary, warnings = Summary(unmatched=pairs.unmatched, failed=len(pairs.unmatched)), 0
    for file in pairs.unmatched:
        print(f"aanet: {file} has no partner and is skipped.", file=sys.stderr)
    complete, of_video = False, isinstance(pairs.video, StereoVideo)
    total = pairs.total if limit is None else min(limit, pairs.total or limit)
    with progress_bar("Matching", total) as advance:
        start = before = time.perf_counter()
        try:
            for done in _outcomes(job, pairs, limit):
                done.wall_seconds, before = time.perf_counter() - before, time.perf_counter()
                summary.add(done, of_video)
                for line in _lines(done, warnings):
                    print(line, file=sys.stderr)
                warnings += len(done.warnings)
                advance()
            complete = True
        except _SourceError as error:
            summary.error, complete = str(error), True
            summary.failed += 1
            print(f"aanet: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            summary.interrupted = True
            complete = pairs.video is not None and pairs.video.live  # there is no other end
        finally:
            closed = [video.close(complete) for video in job.videos.values()]
    summary.failed += report_lost_frames(pairs)
    summary.videos = [str(path) for path in closed if path is not None]
    summary.wall_seconds = time.perf_counter() - start
    return summary


class _SourceError(Exception):
    """The frames ended where they should not."""


def _outcomes(job: Job, pairs: Pairs, limit: int | None) -> Iterator[Done]:
    """Match the pairs one after the other."""
    frames = itertools.islice(pairs, limit)
    skippable: tuple[type[AanetError], ...] = (AanetError,)
    if pairs.total == 1:
        skippable = ()
    elif (
        pairs.video is not None
    ):  # what is wrong with the first frame is wrong with all, unless it is damaged
        skippable = (ReadError,)
    while True:
        try:
            pair = next(frames, None)
        except AanetError as error:
            raise _SourceError(sentence(error)) from error
        if pair is None:
            return
        done = _attempt(job, pair, skippable)
        yield done
        if pairs.video is not None and done.error is None:
            skippable, job = (AanetError,), replace(job, options=replace(job.options, inspect=False))


def _attempt(job: Job, pair: Pair, skippable: tuple[type[AanetError], ...]) -> Done:
    """Match one pair; one with a skippable error does not stop the others, a failure to write does."""
    try:
        return job.run(pair)
    except WriteError:
        raise
    except skippable as error:
        return Done(pair.name, error=sentence(error), time=pair.time)


def _lines(done: Done, earlier_warnings: int) -> list[str]:
    if done.error is not None:
        return [f"aanet: {done.name} is skipped: {done.error}"]
    if earlier_warnings >= _SHOWN_WARNINGS:
        return []
    return [f"{done.name}: {warning}" for warning in done.warnings]


def report(summary: Summary, matcher: StereoMatcher, folder: Path, as_json: bool) -> None:
    """Print the outcome for people, or as JSON."""
    if as_json:
        facts = {"model": matcher.spec.name, "engine": matcher.engine.description, "output": str(folder)}
        print(json.dumps({**facts, **asdict(summary)}, indent=2))
        return
    parts = [f"{summary.matched} matched"]
    parts += [f"{summary.skipped} existed already"] if summary.skipped else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    if summary.matched:
        matching, wall = (
            seconds / summary.matched for seconds in (summary.matching_seconds, summary.pair_seconds)
        )
        parts.append(f"{matching:.2f} s each, {wall:.2f} s with reading and saving")
    print(f"{folder}: {', '.join(parts)} ({matcher.spec.name}; {matcher.engine.description})")
    if summary.interrupted:
        print("Interrupted; finished pairs are kept, and --resume continues with the others.")
