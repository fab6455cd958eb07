"""A camera whose frames a test delivers one by one, and whose plug it can pull."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

import numpy as np

from aanet.errors import ReadError
from aanet.io.frames import StereoFrame


class FakeCamera:
    """Opened with `open`, as often as it is plugged in; `ended` ends its frames."""

    live = True

    def __init__(self, height: int = 48, width: int = 64) -> None:
        self.shape = (height, width, 3)
        self.plugged = True
        self.ended = False
        self.opened = self.closed = self.delivered = 0
        self._frames: SimpleQueue[StereoFrame] = SimpleQueue()

    def open(self) -> FakeCamera:
        if not self.plugged:
            raise ReadError("Camera 7 cannot be opened: it does not exist.")
        self.opened += 1
        return self

    def deliver(self, *values: int) -> None:
        """Frames of one gray value each."""
        for value in values:
            image = np.full(self.shape, value, np.uint8)
            self._frames.put(StereoFrame(image, image, 0.0))

    def __iter__(self) -> Iterator[StereoFrame]:
        while True:
            if not self.plugged:
                raise ReadError("Camera 7 delivers no more frames; is it still connected?")
            try:
                frame = self._frames.get(timeout=0.005)
            except Empty:
                if self.ended:
                    return
                continue
            self.delivered += 1
            yield frame

    def close(self) -> None:
        self.closed += 1


def until(condition: Callable[[], bool]) -> None:
    for _ in range(4000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen within twenty seconds")
