"""Writing videos frame by frame."""

from __future__ import annotations

import contextlib
from pathlib import Path

import cv2
import numpy as np

from aanet.errors import WriteError
from aanet.io.atomic import atomic_path
from aanet.typing import Image

_CODEC = "mp4v"  # MPEG-4 Part 2, which OpenCV's packages can encode everywhere; most have no H.264


class VideoFile:
    """A video that is written frame by frame, and has its name only when it is complete.

    An MP4 file cannot be read before it is closed, so that a second file, `NAME.part.mkv`, is written beside
    it and deleted in the end. It remains if the process is interrupted or killed, and its frames are reused
    if writing is resumed. Until all of them are in the new part, it is called `NAME.earlier.mkv`.
    """

    def __init__(self, path: Path, fps: float, resume: bool = False) -> None:
        """Prepare the file, which is created with its first frame.

        Args:
            path: The name of the complete video.
            fps: Frames per second.
            resume: Whether to begin with the frames of an earlier part.
        """
        self.path, self.fps, self.frames = path, fps, 0
        self.part = path.with_name(f"{path.stem}.part.mkv")
        self._earlier_part = path.with_name(f"{path.stem}.earlier.mkv")
        self._open = contextlib.ExitStack()
        self._temporary: Path | None = None
        self._writers: list[cv2.VideoWriter] = []
        self._size = (0, 0)
        self._earlier: cv2.VideoCapture | None = None
        self._next: Image | None = None  # of the earlier part
        if resume:
            if self.part.is_file() and not self._earlier_part.is_file():
                self.part.replace(self._earlier_part)
            if self._earlier_part.is_file():
                self._earlier = cv2.VideoCapture(str(self._earlier_part))

    @property
    def has_next(self) -> bool:
        """Whether the next frame is in the earlier part."""
        if self._next is None and self._earlier is not None:
            decoded, frame = self._earlier.read()
            if decoded:
                self._next = frame.astype(np.uint8)
            else:
                self._earlier.release()
                self._earlier = None
                if self.frames:
                    self._earlier_part.unlink()
        return self._next is not None

    def reuse(self) -> None:
        """Write the next frame of the earlier part, if `has_next`."""
        assert self._next is not None
        self._write(self._next)
        self._next = None

    def write(self, image: Image) -> None:
        """Write an RGB image; all images must have one size."""
        height, width = image.shape[:2]
        # The codec stores an even number of rows and columns.
        even = cv2.copyMakeBorder(image, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
        self._write(np.ascontiguousarray(even[:, :, ::-1]))

    def close(self, complete: bool) -> Path | None:
        """Finish the video, or its part, and return the path; None if there is no frame or it is closed."""
        if self._earlier is not None:
            self._earlier.release()
        if not self._writers:
            return None
        for writer in self._writers:
            writer.release()
        self._writers = []
        with contextlib.suppress(_IncompleteError), self._open:
            if not complete:
                raise _IncompleteError
            self._require_all_frames()
        if not complete:
            return self.part
        for leftover in (self.part, self._earlier_part):
            leftover.unlink(missing_ok=True)
        return self.path

    def _require_all_frames(self) -> None:
        """Raise an error if the file is too short: OpenCV does not report that it could not write."""
        capture = cv2.VideoCapture(str(self._temporary))
        count = max(int(capture.get(cv2.CAP_PROP_FRAME_COUNT)), 0) if capture.isOpened() else 0
        capture.release()
        if count != self.frames:
            written = f"only {count} of {self.frames} frames could be written"
            raise WriteError(f"Cannot write {self.path}: {written}; is the disk full?")

    def _write(self, frame: Image) -> None:
        size = (frame.shape[1], frame.shape[0])
        if not self._writers:
            self._size = size
            self._start()
        if size != self._size:
            raise WriteError(
                f"Cannot write {self.path}: its frames have {self._size[0]}×{self._size[1]} pixels, and "
                f"frame {self.frames} has {size[0]}×{size[1]}."
            )
        for writer in self._writers:
            writer.write(frame)
        self.frames += 1

    def _start(self) -> None:
        """Create both files."""
        self._temporary = self._open.enter_context(atomic_path(self.path))
        codec = cv2.VideoWriter.fourcc(*_CODEC)
        writers = [
            cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, codec, self.fps, self._size)
            for path in (self._temporary, self.part)
        ]
        if not all(writer.isOpened() for writer in writers):
            with self._open:
                raise WriteError(f"OpenCV cannot write the video {self.path} on this machine.")
        self._writers = writers


class _IncompleteError(Exception):
    """Discards the temporary file."""
