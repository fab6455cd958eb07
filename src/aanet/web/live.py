"""A live session: the newest frame of a camera, matched, for everybody who watches.

The matcher runs in a thread of the server's process, not in a child process as for uploads: the frames come
from one source that belongs to the user, no client waits for a deadline, and a pipe would copy every frame
and every result. The engines release Python's lock while they compute, so that the server answers meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from aanet.errors import AanetError, ReadError
from aanet.geometry.rectification import Calibration
from aanet.inference.options import MatchOptions
from aanet.inference.save_options import SaveOptions
from aanet.inference.temporal import TemporalFilter
from aanet.io.newest import Captured, Frames, NewestFrames
from aanet.matcher import StereoMatcher
from aanet.outputs import disparity_range
from aanet.result import StereoResult
from aanet.web.live_view import View, encode_view
from aanet.web.recording import Recorder

log = logging.getLogger("aanet.web")

UNWATCHED_SECONDS = 5.0  # after the last request, nothing is matched until the next one
_FIRST_FRAME_SECONDS = 30.0
_SILENT_SECONDS = 3.0  # without a frame, after which a camera is said to hang
_RETRY_SECONDS = 1.0  # after an error of the matcher
_LATEST_WEIGHT = 0.2  # of the latest interval in the running mean
_MARGIN = 0.25  # of the first range of disparities, by which the color scale is wider on either side


@dataclass(frozen=True)
class LiveOptions:
    """How frames are matched and shown.

    Attributes:
        calibration: For depth, and to rectify the frames.
        matching: Options of every match.
        temporal: Weight of the new frame in an average along time; None for no average.
        saving: Options of files, and the range of all colors; if not given, it is that of the first result,
            widened.
        folder: Where recordings are written.
    """

    calibration: Calibration | None = None
    matching: MatchOptions = field(default_factory=MatchOptions)
    temporal: float | None = None
    saving: SaveOptions = field(default_factory=SaveOptions)
    folder: Path = Path("out")


class Shown:
    """A result with the time at which its frame arrived."""

    def __init__(self, result: StereoResult, captured_at: float, number: int) -> None:
        self.result, self.captured_at, self.number = result, captured_at, number
        self.version = 0  # of the session when this result became the newest
        self._lock = threading.Lock()

    @functools.cached_property
    def _view(self) -> View:
        return encode_view(self.result)

    def view(self) -> View:
        """The result for the page, which is encoded once and only if somebody wants it."""
        with self._lock:
            return self._view


class LiveSession:
    """Matches the newest frame of a source, again and again, and keeps the newest result.

    Attributes:
        version: Counts results and changes of the state, so that viewers wait for the next one.
        shown: The newest result.
        fps: Results per second; None before the second one.
        warnings: What the checks say about the first pair, in sentences.
        color_range: The ends of the color scale in pixels of disparity.
        saving: Options of files, with this range.
        matcher: What matches the frames.
        recorder: Writes the frames of the source to a file.
    """

    def __init__(
        self,
        matcher: StereoMatcher,
        open_source: Callable[[], Frames],
        options: LiveOptions | None = None,
    ) -> None:
        """Open the source and match its first frame, so that whatever is wrong with it is raised here."""
        self.matcher = matcher
        self._options = options or LiveOptions()
        self._matching = self._options.matching
        self._average: TemporalFilter | None = None
        self._count = self.version = 0
        self.fps: float | None = None
        self.warnings: list[str] = []
        self._problem: str | None = None  # of the matcher
        self._paused = self._stopped = False
        self._watched_at = time.monotonic()
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._wakers: set[Callable[[], None]] = set()
        self.recorder = Recorder(self._options.folder, self._changed)
        self._frames = NewestFrames(
            open_source, reconnect=True, on_frame=self.recorder.write, on_change=self._source_changed
        )
        try:
            first = self._frames.take(_FIRST_FRAME_SECONDS)
            if first is None:
                raise ReadError(self._frames.problem or "No frame has come from the source.")
            self.shown = self._match(first)
            self.color_range = _color_range(self.shown.result, self._options.saving)
        except BaseException:
            self._frames.close()
            raise
        self.saving = replace(self._options.saving, range=self.color_range)
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)
        self._thread.start()

    @property
    def paused(self) -> bool:
        """Whether the newest result stays as it is."""
        return self._paused

    @paused.setter
    def paused(self, value: bool) -> None:
        if value != self._paused:
            self._paused = value
            self._wanted.set()
            self._changed()

    @property
    def problem(self) -> str | None:
        """What is wrong at the moment, in one sentence."""
        if self._frames.problem is not None:
            return self._frames.problem
        silent = self._frames.silent_seconds()
        if silent > _SILENT_SECONDS + 3 / (self._frames.fps or 1):
            return f"No frame has come for {silent:.0f} seconds."
        return self._problem

    @property
    def source_fps(self) -> float | None:
        """Frames per second of the source."""
        return self._frames.fps

    def newest(self) -> tuple[int, Shown]:
        """The version and the newest result, which belong together."""
        with self._lock:
            return self.version, self.shown

    def record(self, on: bool) -> None:
        """Start or finish a recording."""
        if on:
            self.recorder.start(self._frames.fps)
        else:
            self.recorder.finish()

    def watch(self) -> None:
        """Note that somebody watches."""
        self._watched_at = time.monotonic()
        self._wanted.set()

    async def changed(self, after: int, seconds: float) -> None:
        """Wait for a version later than `after`, at most for some seconds."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(event.set)

        with self._lock:
            if self.version > after or self._stopped:
                return
            self._wakers.add(wake)
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), seconds)
        finally:
            with self._lock:
                self._wakers.discard(wake)

    def stop(self) -> None:
        """Ask everything to end, and answer those who wait."""
        self._stopped = True
        self._wanted.set()
        self._changed()

    def close(self) -> None:
        """Stop, and wait for the end."""
        self.stop()
        self._frames.close()
        self._thread.join()
        self.recorder.finish()

    def _changed(self, shown: Shown | None = None) -> None:
        """Count a version, with a new result or without, and wake those who wait."""
        with self._lock:
            self.version += 1
            if shown is not None:
                self.shown, shown.version = shown, self.version
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    def _source_changed(self) -> None:
        # A camera that was plugged in again may stand elsewhere.
        self._matching, self._average = self._options.matching, None
        self._changed()

    def _run(self) -> None:
        while not self._stopped:
            self._wanted.clear()
            if self._paused or time.monotonic() - self._watched_at > UNWATCHED_SECONDS:
                self._wanted.wait(1.0)
                continue
            captured = self._frames.take(0.5)
            if captured is None:
                self._wanted.wait(0.02)  # a thread that has died delivers nothing, at once
                continue
            try:
                shown, problem = self._match(captured), None
            except AanetError as error:
                shown, problem = None, str(error)
            except Exception:
                log.exception("a frame cannot be matched")
                shown, problem = None, "Matching has failed; see the server's log."
            self._publish(shown, problem)
            if problem is not None:
                self._wanted.wait(_RETRY_SECONDS)

    def _publish(self, shown: Shown | None, problem: str | None) -> None:
        if problem != self._problem:
            self._problem = problem
            self._changed()
        if shown is None or self._paused:
            return
        interval = shown.captured_at - self.shown.captured_at
        if interval < UNWATCHED_SECONDS:  # otherwise there was a break
            mean = interval if self.fps is None else 1 / self.fps
            self.fps = 1 / max((1 - _LATEST_WEIGHT) * mean + _LATEST_WEIGHT * interval, 1e-4)
        self._changed(shown)

    def _match(self, captured: Captured) -> Shown:
        frame = captured.frame
        result = self.matcher(
            frame.left, frame.right, calibration=self._options.calibration, options=self._matching
        )
        if self._matching.inspect:
            self.warnings = result.warnings
            self._matching = replace(self._matching, inspect=False)  # what is wrong with one is with all
        if self._options.temporal is not None:
            average = self._average or TemporalFilter(self._options.temporal)
            result.disparity = average(result.disparity)
            self._average = average
        self._count += 1
        return Shown(result, captured.at, self._count)


def _color_range(result: StereoResult, options: SaveOptions) -> tuple[float, float]:
    """A range of colors in pixels for all results, from the first."""
    low, high = disparity_range(result, options)
    if options.range is not None:
        return max(low, 0.0), high
    margin = _MARGIN * (high - low)
    return max(low - margin, 0.0), high + margin
