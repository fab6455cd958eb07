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

    A video that is closed before is kept as `NAME.part.mp4`, and its frames are reused if writing is resumed.
    """

    def __init__(self, path: Path, fps: float, resume: bool = False) -> None:
        """Prepare the file, which is created with its first frame.

        Args:
            path: The name of the complete video.
            fps: Frames per second.
            resume: Whether to begin with the frames of an earlier part.
        """
        self.path, self.fps = path, fps
        self.part = path.with_name(f"{path.stem}.part{path.suffix}")
        self.frames = 0
        self._open = contextlib.ExitStack()
        self._writer: cv2.VideoWriter | None = None
        self._size = (0, 0)
        self._temporary: Path | None = None
        self._earlier = cv2.VideoCapture(str(self.part)) if resume and self.part.is_file() else None
        self._reusable = 0 if self._earlier is None else _frame_count(self._earlier)

    @property
    def has_next(self) -> bool:
        """Whether the next frame is in the earlier part."""
        return self.frames < self._reusable

    def reuse(self) -> None:
        """Write the next frame of the earlier part."""
        assert self._earlier is not None
        decoded, frame = self._earlier.read()
        if not decoded:
            raise WriteError(f"{self.part} cannot be continued; delete it to begin again.")
        self._write(frame.astype(np.uint8))

    def write(self, image: Image) -> None:
        """Write an RGB image; all images must have one size."""
        height, width = image.shape[:2]
        # The codec stores an even number of rows and columns.
        even = cv2.copyMakeBorder(image, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
        self._write(np.ascontiguousarray(even[:, :, ::-1]))

    def close(self, complete: bool) -> Path | None:
        """Finish the file and return its path, or None if there is no frame; later calls do nothing."""
        if self._earlier is not None:
            self._earlier.release()
        if self._writer is None:
            return None
        self._writer.release()
        self._writer = None
        with self._open:  # OpenCV does not report errors, but a file that could not be written is shorter
            capture = cv2.VideoCapture(str(self._temporary))
            count = _frame_count(capture)
            capture.release()
            if count != self.frames:
                written = f"only {count} of {self.frames} frames could be written"
                raise WriteError(f"Cannot write {self.path}: {written}; is the disk full?")
        if not complete:
            return self.part
        self.part.replace(self.path)
        return self.path

    def _write(self, frame: Image) -> None:
        if self._writer is None:
            self._temporary = self._open.enter_context(atomic_path(self.part))
            size = (frame.shape[1], frame.shape[0])
            codec = cv2.VideoWriter.fourcc(*_CODEC)
            self._writer = cv2.VideoWriter(str(self._temporary), cv2.CAP_FFMPEG, codec, self.fps, size)
            self._size = size
            if not self._writer.isOpened():
                self._writer = None
                with self._open:
                    raise WriteError(f"OpenCV cannot write the video {self.path} on this machine.")
        if (frame.shape[1], frame.shape[0]) != self._size:
            raise WriteError(
                f"Cannot write {self.path}: its frames have {self._size[0]}×{self._size[1]} pixels, and "
                f"frame {self.frames} has {frame.shape[1]}×{frame.shape[0]}."
            )
        self._writer.write(frame)
        self.frames += 1


def _frame_count(capture: cv2.VideoCapture) -> int:
    return max(int(capture.get(cv2.CAP_PROP_FRAME_COUNT)), 0) if capture.isOpened() else 0
