"""Recordings of robots as stereo pairs: ROS 1 bags, and ROS 2 bags in MCAP or SQLite files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from aanet.errors import InputError, MissingExtraError, ReadError
from aanet.io.images import AnyImage
from aanet.io.ros_messages import (
    CAMERA_INFO,
    COMPRESSED_IMAGE,
    IMAGE,
    camera_info_text,
    read_image_message,
    stamp_ns,
)
from aanet.io.time_pairing import StampedFrame, pair_by_time
from aanet.io.topics import camera_info_topic, choose_topics, find_topic, is_rectified, list_topics, printable

if TYPE_CHECKING:
    from aanet.io.ros_recording import Recording

DEFAULT_TOLERANCE_S = 0.01  # a third of the time between frames at 30 per second
LISTED_FRAMES = 1000  # without a partner, so that the memory for hours of recording is bounded

_MOST_FPS = 1000.0
_SUFFIXES = (".bag", ".mcap", ".db3")


def is_recording(path: str | os.PathLike[str]) -> bool:
    """Whether the path is that of a ROS recording: a .bag, .mcap or .db3 file, or a folder of ROS 2."""
    path = Path(path)
    if path.is_dir():  # its files may be compressed, as in drive_0.db3.zstd
        return any(suffix in _SUFFIXES[1:] for file in path.iterdir() for suffix in file.suffixes)
    return path.suffix in _SUFFIXES


@dataclass(frozen=True)
class RecordedPair:
    """Two frames with almost the same time stamp; `load` decodes them."""

    left: StampedFrame
    right: StampedFrame
    topics: tuple[str, str] = field(repr=False)

    @property
    def stamp_ns(self) -> int:
        """The time stamp of the left frame, in nanoseconds since 1970 if the robot's clock is right."""
        return self.left.stamp

    @property
    def name(self) -> str:
        """The time stamp in seconds, for the names of output files."""
        return _seconds(self.stamp_ns)

    def load(self) -> tuple[AnyImage, AnyImage]:
        """Decode both images."""
        left, right = (
            read_image_message(frame.message, f"The image of {printable(topic)} at {_seconds(frame.stamp)}")
            for frame, topic in zip((self.left, self.right), self.topics, strict=True)
        )
        return left, right


class StereoBag:
    """The stereo pairs of a ROS recording.

    Iterating yields one `RecordedPair` at a time and keeps none of them; it can be done several times.

    Attributes:
        name: A name for output files.
        topics: The image topics of the left and the right camera.
        camera_info_topics: The topics of their camera_info, whether there are such messages or not.
        camera_info: The camera_info of both as text, which `aanet.geometry` parses; None if one is missing or
            not calibrated.
        rectified: Whether the topics are those of rectified images, by their names.
        total: The number of pairs if every frame has a partner.
        fps: Pairs per second; None if unknown.
        lost: The number of frames without a partner; complete after an iteration.
        unmatched: Topic and time stamp of the first `LISTED_FRAMES` of them.
    """

    live = False  # waiting loses no frames, unlike with a camera

    def __init__(
        self,
        path: str | os.PathLike[str],
        topics: tuple[str, str] | None = None,
        tolerance: float = DEFAULT_TOLERANCE_S,
    ) -> None:
        """Open a recording and choose its topics.

        Args:
            path: A .bag, .mcap or .db3 file, or the folder of a ROS 2 recording.
            topics: The topics of the left and the right images; found by their names if they are not given.
            tolerance: The largest difference between the time stamps of a pair, in seconds.
        """
        if not 0 <= tolerance <= 1:
            raise InputError(f"The tolerance of time stamps is 0 to 1 seconds; got {tolerance}.")
        self.path = Path(path)
        self.name = self.path.stem
        self.tolerance = tolerance
        self.lost = 0
        self.unmatched: list[str] = []
        with self._open() as recording:
            counts = recording.counts(IMAGE, COMPRESSED_IMAGE)
            if not counts:
                raise InputError(
                    f"{self.path} has no image topics; its topics are: {list_topics(recording.topics)}."
                )
            if topics is None:
                self.topics = choose_topics(counts, str(self.path))
            else:
                left, right = (find_topic(counts, topic, str(self.path)) for topic in topics)
                self.topics = (left, right)
            if self.topics[0] == self.topics[1]:
                raise InputError(f"Both topics are {printable(self.topics[0])}; expected two.")
            self.total = min(counts[topic] for topic in self.topics)
            rate = (self.total - 1) * 1e9 / max(recording.end_ns - recording.start_ns, 1)
            self.fps = rate if 0.01 <= rate <= _MOST_FPS else None
            left, right = map(camera_info_topic, self.topics)
            self.camera_info_topics = (left, right)
            self.camera_info = self._read_camera_info(recording)
        self.rectified = all(map(is_rectified, self.topics))

    def __iter__(self) -> Iterator[RecordedPair]:
        """Yield the pairs in order of time; a recording that is damaged raises an error at that place."""
        self.lost = 0
        self.unmatched.clear()
        with self._open() as recording:
            yield from self._pairs(recording)

    def sample(self, count: int) -> Iterator[RecordedPair]:
        """Yield up to `count` pairs, evenly distributed over the recording."""
        with self._open() as recording:
            start, duration = recording.start_ns, recording.end_ns - recording.start_ns
            for index in range(count):
                position = start + index * duration // count
                yield from islice(self._pairs(recording, position, sampled=True), 1)

    def _pairs(
        self, recording: Recording, start: int | None = None, *, sampled: bool = False
    ) -> Iterator[RecordedPair]:
        def lost(frame: StampedFrame) -> None:
            self.lost += not sampled
            if not sampled and self.lost <= LISTED_FRAMES:
                self.unmatched.append(f"{printable(self.topics[frame.side])} {_seconds(frame.stamp)}")

        found = False
        frames = self._frames(recording, start, lost)
        for left, right in pair_by_time(frames, round(self.tolerance * 1e9), lost):
            found = True
            yield RecordedPair(left, right, self.topics)
        if not found and not sampled:
            raise ReadError(
                f"{self.path}: no frames of {' and '.join(map(printable, self.topics))} have time stamps "
                f"within {self.tolerance:g} s of each other; --tolerance SECONDS is how much they may differ."
            )

    def _frames(
        self, recording: Recording, start: int | None, lost: Callable[[StampedFrame], None]
    ) -> Iterator[StampedFrame]:
        for message in recording.messages(self.topics, (IMAGE, COMPRESSED_IMAGE), start):
            side = self.topics.index(message.topic)
            if message.content is None:
                lost(StampedFrame(side, message.received, None, 0))
            else:
                stamp = stamp_ns(message.content, message.received)
                yield StampedFrame(side, stamp, message.content, message.size)

    def _read_camera_info(self, recording: Recording) -> tuple[str, str] | None:
        wanted = self.camera_info_topics
        texts: dict[str, str | None] = {}
        for message in recording.messages(wanted, (CAMERA_INFO,)):
            if message.topic not in texts and message.content is not None:
                texts[message.topic] = camera_info_text(message.content)
            if len(texts) == len(set(wanted)):
                break
        left, right = (texts.get(topic) for topic in wanted)
        return None if left is None or right is None or wanted[0] == wanted[1] else (left, right)

    def _open(self) -> AbstractContextManager[Recording]:
        try:
            from aanet.io.ros_recording import open_recording
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"Reading {self.path} needs the package rosbags; install it with pip install 'aanet[ros]'."
            ) from error
        return open_recording(self.path)


def _seconds(stamp: int) -> str:
    return f"{stamp // 10**9}.{stamp % 10**9:09d}"
