"""The newest frame of a camera or stream, for a reader that is slower than the camera."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import cv2

from aanet.errors import AanetError, ReadError
from aanet.io.frames import StereoFrame

RETRY_SECONDS = 1.0  # between attempts to open a source again
_REPEAT_SECONDS = 0.1  # after the last frame of a file, which may be its only one
_JOIN_SECONDS = 5.0  # a read of a camera that hangs cannot be interrupted
_LATEST_WEIGHT = 0.1  # of the latest interval in the running mean


class Frames(Protocol):
    """An open source of frames: a `StereoVideo`, or a fake camera."""

    @property
    def live(self) -> bool:
        """Whether the frames come from a camera or stream, in real time."""

    def __iter__(self) -> Iterator[StereoFrame]:
        """Yield the frames; raises an `AanetError` where the source fails."""

    def close(self) -> None:
        """Release the source."""


class Captured(NamedTuple):
    """A frame, and when it arrived, as `time.monotonic` counts."""

    frame: StereoFrame
    at: float


class NewestFrames:
    """Frames of a source, of which every reader gets the newest: those that come in between are dropped.

    A thread reads all frames and keeps the last one, so that neither a queue nor a delay grows. The frames of
    a file are read at the speed at which they were recorded.

    Attributes:
        problem: What is wrong with the source at the moment, in one sentence; None while frames arrive.
        fps: Measured frames per second; None before the second frame.
    """

    def __init__(
        self,
        open_source: Callable[[], Frames],
        *,
        reconnect: bool = False,
        on_frame: Callable[[StereoFrame], None] = lambda _: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the source, and start to read it.

        Args:
            open_source: Opens it, and raises an `AanetError` if that is not possible.
            reconnect: Whether to open it again, for as long as it takes, when it fails or ends. Otherwise the
                frames end there.
            on_frame: Called with every frame, in the thread that reads them.
            on_change: Called when `problem` has changed, in the same thread.
        """
        self.problem: str | None = None
        self.fps: float | None = None
        self._open_source, self._reconnect = open_source, reconnect
        self._on_frame, self._on_change = on_frame, on_change
        self._arrived = threading.Condition()
        self._newest: Captured | None = None  # until it is taken
        self._last_arrival: float | None = None
        self._error: AanetError | None = None
        self._ended = False
        self._stop = threading.Event()
        first = open_source()
        self._thread = threading.Thread(target=self._run, args=(first,), name="camera", daemon=True)
        self._thread.start()

    def take(self, seconds: float | None = None) -> Captured | None:
        """Wait for a frame that was not taken before, and return the newest; None at the end or if none came.

        Raises the error of a source that has failed and is not opened again.
        """
        with self._arrived:
            self._arrived.wait_for(lambda: self._newest is not None or self._ended, seconds)
            captured, self._newest = self._newest, None
            if captured is None and self._error is not None:
                raise self._error
            return captured

    def __iter__(self) -> Iterator[StereoFrame]:
        """Yield the newest frame each time, until the source ends; it is closed with the iteration."""
        try:
            while (captured := self.take()) is not None:
                yield captured.frame
        finally:
            self.close()

    def close(self) -> None:
        """Stop reading and release the source."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(_JOIN_SECONDS)

    def silent_seconds(self) -> float:
        """How long ago the last frame arrived."""
        return 0.0 if self._last_arrival is None else time.monotonic() - self._last_arrival

    def _run(self, first: Frames) -> None:
        source: Frames | None = first
        try:
            while source is not None:
                error = self._read(source)
                source = None if self._stop.is_set() else self._next_source(error)
        finally:
            with self._arrived:
                self._ended = True
                self._arrived.notify_all()

    def _read(self, source: Frames) -> AanetError | None:
        """Read until the source fails, ends or is no longer wanted; returns the error."""
        start = time.monotonic()
        try:
            for frame in source:
                if not source.live and self._stop.wait(max(start + frame.time - time.monotonic(), 0)):
                    break
                if self._stop.is_set():
                    break
                self._keep(frame)
        except AanetError as error:
            return error
        except cv2.error as error:  # data that OpenCV cannot decode
            return ReadError(f"A frame cannot be decoded ({error.err}).")
        finally:
            source.close()  # by the thread that reads: OpenCV does not allow both at once
        return ReadError("The stream has ended.") if source.live else None

    def _keep(self, frame: StereoFrame) -> None:
        now = time.monotonic()
        if self._last_arrival is not None and self.problem is None:
            interval = max(now - self._last_arrival, 1e-4)
            mean = interval if self.fps is None else 1 / self.fps
            self.fps = 1 / ((1 - _LATEST_WEIGHT) * mean + _LATEST_WEIGHT * interval)
        self._last_arrival = now
        self._report(None)
        with self._arrived:
            self._newest = Captured(frame, now)
            self._arrived.notify_all()
        self._on_frame(frame)

    def _next_source(self, error: AanetError | None) -> Frames | None:
        """Open the source again, as often as necessary; None if it is not wanted any more."""
        if not self._reconnect:
            self._error = error
            return None
        while True:
            if error is not None:
                self._report(f"{error} Trying to open it again.")
            if self._stop.wait(_REPEAT_SECONDS if error is None else RETRY_SECONDS):
                return None
            try:
                return self._open_source()
            except AanetError as failure:
                error = failure

    def _report(self, problem: str | None) -> None:
        if problem != self.problem:
            self.problem = problem
            self._on_change()
