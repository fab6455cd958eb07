"""Frames of stereo videos, cameras and network streams, as pairs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import cv2
import numpy as np

from aanet.errors import InputError, ReadError
from aanet.io.images import AnyImage

FrameSource = str | os.PathLike[str] | int
Kind = Literal["a video", "a camera", "a stream"]

VIDEO_SUFFIXES = (".mp4", ".avi", ".mkv", ".mov", ".webm", ".m4v", ".mpg", ".mpeg")
STREAM_SCHEMES = ("rtsp", "rtsps", "rtmp", "http", "https", "udp", "tcp", "rtp", "srt")
_MAX_FPS = 1000.0  # some containers state nonsense

# FFmpeg reads this when it is first used: errors are one sentence of ours instead of its log.
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")


class StereoFrame(NamedTuple):
    """One pair of a video or camera, in RGB."""

    left: AnyImage
    right: AnyImage
    time: float  # seconds since the beginning of the video, or since the camera was opened


def frame_source_kind(source: FrameSource) -> Kind | None:
    """Tell what a source of frames is; None if it is no such source but, for instance, an image.

    A camera is a number or a device such as /dev/video0, a stream is a URL, and a video is a file.
    """
    if isinstance(source, int):
        return "a camera"
    name = os.fspath(source)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", name):
        return "a stream"
    if (name.isdecimal() and not Path(name).exists()) or name.startswith(("/dev/video", "/dev/v4l/")):
        return "a camera"
    return "a video" if Path(name).suffix.lower() in VIDEO_SUFFIXES else None


class StereoVideo:
    """Pairs of frames of one source with the two views side by side, or of two sources.

    Iterating yields a `StereoFrame` at a time and keeps none of them. The frames of a file can be iterated
    several times; those of a camera or stream arrive once, and it is released when the iteration ends.

    Attributes:
        name: A name for output files.
        live: Whether the frames come from a camera or stream, so that waiting loses frames.
        total: The number of frames that a file states; None if unknown.
        fps: Frames per second; None if unknown.
    """

    def __init__(
        self,
        left: FrameSource,
        right: FrameSource | None = None,
        *,
        camera_size: tuple[int, int] | None = None,
    ) -> None:
        """Open the source or sources, and read the first frame, so that errors are raised here.

        Args:
            left: A video, the number of a camera, its device or the URL of a stream; with both views side by
                side, the left one first, if `right` is not given.
            right: The same for the right view.
            camera_size: Width and height of the frames of a camera, which delivers 640×480 otherwise; with
                both views side by side, the whole frame.
        """
        self._sources = [_Source.of(source) for source in (left, right) if source is not None]
        self._camera_size = camera_size
        kinds = [source.kind for source in self._sources]
        if len(set(kinds)) > 1:
            raise InputError(f"{left} is {kinds[0]}, but {right} is {kinds[1]}; both must be of one kind.")
        if camera_size is not None and kinds[0] != "a camera":
            raise InputError(f"Only a camera can be asked for frames of a size; {left} is {kinds[0]}.")
        self.live = kinds[0] != "a video"
        self.name = self._sources[0].file_name
        self._captures = self._open()
        self._started = time.monotonic()
        totals, rates = zip(*(_facts(capture) for capture in self._captures), strict=True)
        self.total: int | None = None if self.live or None in totals else min(totals)
        self.fps: float | None = rates[0]
        first = next(self._read(0), None)
        if first is None:
            self.close()
            raise ReadError(f"{self._sources[0].shown} has no frames that OpenCV can decode.")
        self._first = first
        if not self.live:
            self.close()

    def __enter__(self) -> StereoVideo:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the cameras or files."""
        for capture in self._captures:
            capture.release()
        self._captures = []

    def __iter__(self) -> Iterator[StereoFrame]:
        """Yield the frames; a recording that ends too early raises an error after its last frame."""
        try:
            if self.live:
                yield self._first
                yield from self._read(1)
            else:
                self._captures = self._open()
                yield from self._read(0)
        finally:
            self.close()

    def sample(self, count: int) -> Iterator[StereoFrame]:
        """Yield up to `count` frames, evenly distributed over a file; of other sources only the first."""
        if self.total is None or self.total <= count:
            yield self._first
            return
        captures = self._open()
        try:
            for index in range(count):
                position = (2 * index + 1) * self.total // (2 * count)
                for capture in captures:
                    capture.set(cv2.CAP_PROP_POS_FRAMES, position)
                images, _ = _grab(captures)
                if images is not None:
                    yield self._pair(images, 0.0)
        finally:
            for capture in captures:
                capture.release()

    def _open(self) -> list[cv2.VideoCapture]:
        captures: list[cv2.VideoCapture] = []
        try:
            for source in self._sources:
                captures.append(source.open(self._camera_size))
        except BaseException:
            for capture in captures:
                capture.release()
            raise
        return captures

    def _read(self, count: int) -> Iterator[StereoFrame]:
        """Read until the end, after `count` frames that were read before."""
        while self._captures:
            images, ended = _grab(self._captures)
            if images is None:
                self._check_end(count, ended)
                return
            yield self._pair(images, self._time(count))
            count += 1

    def _time(self, index: int) -> float:
        if self.live:
            return time.monotonic() - self._started
        stated = float(self._captures[0].get(cv2.CAP_PROP_POS_MSEC)) / 1000
        return stated if stated > 0 or not self.fps else index / self.fps

    def _check_end(self, count: int, ended: list[bool]) -> None:
        """Raise an error if the sources end where they should not."""
        if count == 0:
            return
        short = self._sources[ended.index(True)].shown
        if self._sources[0].kind == "a camera":
            raise ReadError(f"{short} delivers no more frames after {count}; is it still connected?")
        if not all(ended):
            other = self._sources[ended.index(False)].shown
            raise ReadError(
                f"{short} ended after {count} frames, but {other} goes on: the two do not have one length."
            )
        # Containers without an index state a length that is rounded.
        if self.total is not None and count < self.total - max(2, self.total // 100):
            raise ReadError(f"{short} ended after {count} of {self.total} frames: it is cut off or damaged.")

    def _pair(self, images: list[AnyImage], seconds: float) -> StereoFrame:
        shapes = [f"{image.shape[1]}×{image.shape[0]}" for image in images]
        if len(images) == 2:
            if shapes[0] != shapes[1]:
                raise InputError(
                    f"The left frames have {shapes[0]} pixels, the right ones {shapes[1]}; "
                    "a rectified pair has one size."
                )
            return StereoFrame(images[0], images[1], seconds)
        height, width = images[0].shape[:2]
        if width < 2 * height:
            raise InputError(
                f"The frames of {self._sources[0].shown} have {shapes[0]} pixels, too few columns for a left "
                "and a right view side by side; give the source of the right side too."
            )
        half = width // 2
        return StereoFrame(images[0][:, :half], images[0][:, half : 2 * half], seconds)


@dataclass(frozen=True)
class _Source:
    """A source that OpenCV can open."""

    address: str | int
    kind: Kind

    @classmethod
    def of(cls, source: FrameSource) -> _Source:
        kind = frame_source_kind(source)
        if kind is None or (isinstance(source, int) and (isinstance(source, bool) or source < 0)):
            known = ", ".join(VIDEO_SUFFIXES)
            raise InputError(f"Expected a video ({known}), a camera or a stream; got {str(source)[:80]!r}.")
        address = source if isinstance(source, int) else os.fspath(source)
        if isinstance(address, str) and kind == "a camera" and address.isdecimal():
            address = int(address)
        return cls(address, kind)

    @property
    def shown(self) -> str:
        """The name in messages, without the password that a URL may have."""
        if isinstance(self.address, int):
            return f"Camera {self.address}"
        return re.sub(r"//[^/@]*@", "//", self.address)

    @property
    def file_name(self) -> str:
        if self.kind == "a stream":
            return "stream"
        return f"camera{self.address}" if isinstance(self.address, int) else Path(self.address).stem

    def open(self, size: tuple[int, int] | None = None) -> cv2.VideoCapture:
        address = self.address
        if isinstance(address, str):
            if self.kind == "a stream" and address.partition("://")[0].lower() not in STREAM_SCHEMES:
                known = ", ".join(STREAM_SCHEMES)
                raise InputError(f"The address of a stream begins with one of {known}; got {self.shown}.")
            if self.kind != "a stream":
                if not Path(address).exists():
                    raise ReadError(f"{address} does not exist; expected {self.kind}.")
                address = str(Path(address).absolute())  # FFmpeg reads "concat:a.mp4" as a command
        level = cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
        try:
            capture = cv2.VideoCapture(address)
        finally:
            cv2.utils.logging.setLogLevel(level)
        if not capture.isOpened():
            raise ReadError(f"{self.shown} {_REASONS[self.kind]}.")
        if size is not None:
            _set_size(capture, size, self.shown)
        return capture


_REASONS: dict[Kind, str] = {
    "a video": "is damaged, or OpenCV cannot decode its format",
    "a camera": "cannot be opened: it does not exist, or another program uses it",
    "a stream": "cannot be opened: nothing answers there, or OpenCV cannot decode its format",
}


def _set_size(capture: cv2.VideoCapture, size: tuple[int, int], shown: str) -> None:
    # Uncompressed frames of larger sizes do not fit USB 2; cameras without JPEG ignore this.
    capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*"MJPG"))
    sides = (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT)
    for side, pixels in zip(sides, size, strict=True):
        capture.set(side, pixels)
    width, height = (int(capture.get(side)) for side in sides)
    if (width, height) != size:
        capture.release()
        raise InputError(
            f"{shown} has no frames of {size[0]}×{size[1]} pixels; it would deliver {width}×{height}."
        )


def _facts(capture: cv2.VideoCapture) -> tuple[int | None, float | None]:
    """The number of frames and the frames per second, as stated; None if unknown."""
    count, fps = int(capture.get(cv2.CAP_PROP_FRAME_COUNT)), float(capture.get(cv2.CAP_PROP_FPS))
    return count if count > 0 else None, fps if 0 < fps <= _MAX_FPS else None


def _grab(captures: list[cv2.VideoCapture]) -> tuple[list[AnyImage] | None, list[bool]]:
    """The next frame of every source, or None and which of them have ended."""
    ended = [not capture.grab() for capture in captures]  # all at one moment; decoding takes longer
    if any(ended):
        return None, ended
    images: list[AnyImage] = []
    for capture in captures:
        decoded, image = capture.retrieve()
        ended[len(images)] = not decoded
        if not decoded:
            return None, ended
        images.append(np.ascontiguousarray(image[:, :, ::-1]))
    return images, ended
