"""Recording of the frames of a live source, both views side by side, as `aanet predict` reads them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from aanet.errors import WriteError
from aanet.io.frames import StereoFrame
from aanet.io.images import as_rgb8
from aanet.io.video import VideoFile

_DEFAULT_FPS = 10.0


class Recorder:
    """Writes frames to a video while it is on; one recording at a time.

    Frames are recorded as the camera delivers them, not results, because results can be computed again.

    Attributes:
        name: The name of the file that is being written; None while nothing is recorded.
        finished: The name of the last complete file.
        problem: Why the last recording ended by itself, in one sentence.
    """

    def __init__(self, folder: Path, on_change: Callable[[], None] = lambda: None) -> None:
        self.name: str | None = None
        self.finished: str | None = None
        self.problem: str | None = None
        self._folder, self._on_change = folder, on_change
        self._video: VideoFile | None = None
        self._lock = threading.Lock()  # frames come from another thread than requests

    def start(self, fps: float | None) -> None:
        """Begin a new file with the next frame, unless one is being written."""
        with self._lock:
            if self._video is None:
                path = _unused(self._folder, time.strftime("live-%Y%m%d-%H%M%S"))
                self._video = VideoFile(path, fps or _DEFAULT_FPS)
                self.name, self.problem = path.name, None
        self._on_change()

    def write(self, frame: StereoFrame) -> None:
        """Write a frame if the recorder is on; a recording that fails ends, and `problem` tells why."""
        with self._lock:
            if self._video is None:
                return
            try:
                self._video.write(np.hstack([as_rgb8(frame.left), as_rgb8(frame.right)]))
                return
            except WriteError as error:
                self.problem = str(error)
        self.finish()

    def finish(self) -> None:
        """Complete the file, if one is being written."""
        with self._lock:
            video, self._video, self.name = self._video, None, None
            try:
                path = None if video is None else video.close(complete=True)
                self.finished = self.finished if path is None else path.name
            except WriteError as error:
                self.problem = str(error)
        self._on_change()


def _unused(folder: Path, stem: str) -> Path:
    """A name that no file has; two recordings may begin within a second."""
    path, count = folder / f"{stem}.mp4", 1
    while path.exists():
        count += 1
        path = folder / f"{stem}-{count}.mp4"
    return path
