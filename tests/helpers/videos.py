"""Small videos for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray


def write_video(path: Path, frames: Sequence[NDArray[np.uint8]], fps: float = 10) -> Path:
    """Write RGB frames; every frame is a JPEG, so that a cut-off file keeps the ones before the cut."""
    height, width = frames[0].shape[:2]
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), fps, (width, height))
    for frame in frames:
        writer.write(np.ascontiguousarray(frame[:, :, ::-1]))
    writer.release()
    return path


def flat_frames(count: int, height: int = 48, width: int = 64, first: int = 0) -> list[NDArray[np.uint8]]:
    """Frames of one gray value each, which counts up by ten."""
    return [np.full((height, width, 3), (first + 10 * index) % 256, np.uint8) for index in range(count)]


class FakeCapture:
    """A camera that delivers three frames and is then unplugged."""

    def __init__(self, _: object) -> None:
        self.left, self.open = 3, True

    def isOpened(self) -> bool:
        return self.open

    def grab(self) -> bool:
        self.left -= 1
        return self.open and self.left >= 0

    def retrieve(self) -> tuple[bool, np.ndarray]:
        return True, np.full((48, 128, 3), self.left, np.uint8)

    def get(self, _: int) -> float:
        return 0.0

    def release(self) -> None:
        self.open = False
