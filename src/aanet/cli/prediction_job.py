"""The work of `aanet predict`: match pairs or frames, write files and videos, and report."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from aanet import outputs
from aanet.cli.console import progress_bar, sentence
from aanet.cli.options import refuse_existing
from aanet.cli.recordings import report_lost_frames
from aanet.errors import AanetError, ReadError, WriteError
from aanet.prediction.outcome import Done, Summary
from aanet.prediction.pipeline import Pipeline, Steps

if TYPE_CHECKING:
    from aanet.inference.temporal import TemporalFilter
    from aanet.io.images import AnyImage
    from aanet.io.pairs import Pair, Pairs
    from aanet.io.video import VideoFile
    from aanet.matcher import StereoMatcher
    from aanet.prediction.work import Work
    from aanet.result import StereoResult
    from aanet.viz import ColorRange

_SHOWN_WARNINGS = 20  # at most, because there may be thousands of pairs; --json lists all warnings
_DEFAULT_FPS = 10.0
_SAMPLE = 5  # pairs that determine the color range of all
_MARGIN = 0.25  # by which the range of a single frame is widened on either side


@dataclass(frozen=True)
class Job:
    """What to do with every pair or frame."""

    work: Work
    folder: Path
    resume: bool
    overwrite: bool
    videos: dict[str, VideoFile]  # by output
    average: TemporalFilter | None

    def read(self, pair: Pair) -> tuple[AnyImage, AnyImage] | None:
        """The images of a pair; None if an earlier run has finished it."""
        names, videos = self.work.file_names(pair.name), self.videos.values()
        found = self.resume and all(map(self.work.storage.exists, names))
        if found and all(each.has_next for each in videos):
            return None
        if not self.resume:
            refuse_existing(self.overwrite, *(self.folder / name for name in names))
        return pair.load()

    def match(self, pair: Pair, images: tuple[AnyImage, AnyImage]) -> StereoResult:
        """Match one pair."""
        result = self.work.match(images)
        result.time = pair.time
        if self.average is not None:
            result.disparity = self.average(result.disparity)
        return result

    def save(self, pair: Pair, result: StereoResult) -> Done:
        """Write the files and frames of one pair."""
        done = self.work.save(pair.name, result)
        for output, video in self.videos.items():
            if video.has_next:
                video.reuse()
                continue
            picture = outputs.find_output(output).picture
            assert picture is not None
            video.write(picture(result, self.work.saving))
        return done

    def skip(self, pair: Pair) -> Done:
        """Leave the files of an earlier run as they are, and take over its frames."""
        for video in self.videos.values():
            video.reuse()
        return Done(pair.name, skipped=True, time=pair.time)

    @property
    def steps(self) -> Steps[Pair, tuple[AnyImage, AnyImage], StereoResult]:
        """What happens to each pair."""
        return Steps(self.read, self.match, self.save, self.skip, _failed)


def _failed(pair: Pair, error: AanetError) -> Done:
    return Done(pair.name, error=sentence(error), time=pair.time)


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


def color_range(work: Work, wanted: list[str], pairs: Pairs) -> ColorRange | None:
    """One range of colors for all pairs, from a sample of them; None if no output has colors."""
    if all(outputs.find_output(output).picture is None for output in wanted):
        return None
    from aanet.viz import ColorRange, value_range

    plain = replace(work, options=replace(work.options, check=False, inspect=False, strict=False))
    ranges = []
    for images in pairs.sample(_SAMPLE):
        with contextlib.suppress(AanetError):  # reported when it is the pair's turn
            ranges.append(value_range(plain.match(images).disparity))
    if not ranges:
        return None
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    margin = _MARGIN * (high - low) if len(ranges) == 1 else 0.0
    return ColorRange(max(low - margin, 0.0), max(high + margin, 1e-3))


def run(
    job: Job, pairs: Pairs, limit: int | None, listed: bool = True, lines: TextIO | None = None
) -> Summary:
    """Match all pairs; on Ctrl-C, the outcome of those that are finished is returned.

    Args:
        job: What to do.
        pairs: The pairs.
        limit: How many of them; None is all.
        listed: Whether the summary lists the pairs, which takes memory for each.
        lines: Gets a line of JSON for each pair as soon as it is finished.
    """
    summary = Summary(unmatched=pairs.unmatched, failed=len(pairs.unmatched))
    for file in pairs.unmatched:
        print(f"aanet: {file} has no partner and is skipped.", file=sys.stderr)
    complete = False
    total = pairs.total if limit is None else min(limit, pairs.total or limit)
    with progress_bar("Matching", total) as advance:
        count = _counting(summary, pairs, listed, lines, advance)
        start = time.perf_counter()
        try:
            # Frames come one after the other, and each may depend on those before.
            if pairs.video is None and pairs.total != 1:
                _overlapped(job, pairs, limit, count)
            else:
                for done in _sequential(job, pairs, limit):
                    count(done)
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


def _counting(
    summary: Summary, pairs: Pairs, listed: bool, lines: TextIO | None, advance: Callable[[], None]
) -> Callable[[Done], None]:
    """A function that takes the outcomes: counts, lists, prints and writes them."""
    from aanet.io.frames import StereoVideo

    of_video, warnings = isinstance(pairs.video, StereoVideo), 0

    def count(done: Done) -> None:
        nonlocal warnings
        summary.add(done, of_video) if listed else summary.count(done)
        for line in _lines(done, warnings):
            print(line, file=sys.stderr)
        warnings += len(done.warnings)
        if lines is not None:
            lines.write(json.dumps(asdict(done)) + "\n")
            lines.flush()
        advance()

    return count


class _SourceError(Exception):
    """The frames ended where they should not."""


def _overlapped(job: Job, pairs: Pairs, limit: int | None, count: Callable[[Done], None]) -> None:
    """Match still pairs while others are read and written."""
    with Pipeline(job.steps) as pipeline:
        try:
            for done in pipeline.outcomes(itertools.islice(pairs, limit)):
                count(done)
        except KeyboardInterrupt:
            for done in pipeline.rest():
                count(done)
            raise


def _sequential(job: Job, pairs: Pairs, limit: int | None) -> Iterator[Done]:
    """Match frames, or a single pair, one after the other."""
    frames = itertools.islice(pairs, limit)
    # What is wrong with the first frame is wrong with all, unless it is damaged.
    skippable: tuple[type[AanetError], ...] = () if pairs.total == 1 else (ReadError,)
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
            skippable = (AanetError,)
            job = replace(job, work=replace(job.work, options=replace(job.work.options, inspect=False)))


def _attempt(job: Job, pair: Pair, skippable: tuple[type[AanetError], ...]) -> Done:
    """Match one pair; one with a skippable error does not stop the others, a failure to write does."""
    try:
        return job.steps.one(pair)
    except WriteError:
        raise
    except skippable as error:
        return _failed(pair, error)


def _lines(done: Done, earlier_warnings: int) -> list[str]:
    if done.error is not None:
        return [f"aanet: {done.name} is skipped: {done.error}"]
    if earlier_warnings >= _SHOWN_WARNINGS:
        return []
    return [f"{done.name}: {warning}" for warning in done.warnings]


def report(summary: Summary, matcher: StereoMatcher, folder: Path, as_json: bool, to: TextIO) -> None:
    """Print the outcome for people, or as JSON."""
    if as_json:
        facts = {"model": matcher.spec.name, "engine": matcher.engine.description, "output": str(folder)}
        print(json.dumps({**facts, **asdict(summary)}, indent=2), file=to)
        return
    parts = [f"{summary.matched} matched"]
    parts += [f"{summary.skipped} existed already"] if summary.skipped else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    if summary.matched:
        matching, wall = (
            seconds / summary.matched for seconds in (summary.matching_seconds, summary.wall_seconds)
        )
        parts.append(f"{matching:.2f} s each, {wall:.2f} s with reading and saving")
    print(f"{folder}: {', '.join(parts)} ({matcher.spec.name}; {matcher.engine.description})", file=to)
    if summary.interrupted:
        print("Interrupted; finished pairs are kept, and --resume continues with the others.", file=to)
