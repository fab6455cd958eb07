"""Pairing of the frames of two cameras by their time stamps, in one pass with bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from aanet.io.files import MEGABYTE

# Recorders start and stop topics one after the other; frames that this leaves alone are not missing anything.
EDGE_NS = 10**9
_MOST_WAITING = 256 * MEGABYTE  # of one camera, while frames of the other are late or missing


@dataclass(frozen=True)
class StampedFrame:
    """A frame of one camera that waits for its partner."""

    side: int  # 0 for the left camera, 1 for the right one
    stamp: int  # nanoseconds
    message: Any
    size: int  # bytes


def pair_by_time(
    frames: Iterable[StampedFrame], tolerance: int, lost: Callable[[StampedFrame], None]
) -> Iterator[tuple[StampedFrame, StampedFrame]]:
    """Yield pairs of the frames that are closest in time.

    Args:
        frames: The frames of both cameras, those of each camera in the order of time.
        tolerance: The largest difference of the stamps, in nanoseconds.
        lost: Called for each frame without a partner, except within a second of the beginning or the end of
            the other camera's frames.
    """
    sides = _Side(), _Side()
    for frame in frames:
        side = sides[frame.side]
        if frame.stamp == side.newest:
            lost(frame)  # a repeated frame
            continue
        side.put(frame)
        yield from _settle(sides, tolerance, lost, ended=False)
        while side.waiting_bytes > _MOST_WAITING and len(side.waiting) > 1:
            lost(side.take())
    yield from _settle(sides, tolerance, lost, ended=True)
    for side, other in (sides, sides[::-1]):
        for frame in side.waiting:
            if other.newest is None or abs(frame.stamp - other.newest) > EDGE_NS:
                lost(frame)


class _Side:
    """The frames of one camera that have no partner yet."""

    def __init__(self) -> None:
        self.waiting: deque[StampedFrame] = deque()
        self.waiting_bytes = 0
        self.newest: int | None = None
        self.started = False  # whether a frame has been taken

    def put(self, frame: StampedFrame) -> None:
        self.waiting.append(frame)
        self.waiting_bytes += frame.size
        self.newest = frame.stamp

    def take(self) -> StampedFrame:
        frame = self.waiting.popleft()
        self.waiting_bytes -= frame.size
        self.started = True
        return frame


def _settle(
    sides: tuple[_Side, _Side], tolerance: int, lost: Callable[[StampedFrame], None], *, ended: bool
) -> Iterator[tuple[StampedFrame, StampedFrame]]:
    """Take every pair that later frames cannot change."""
    while sides[0].waiting and sides[1].waiting:
        early, late = sorted(sides, key=lambda side: side.waiting[0].stamp)
        first, partner = early.waiting[0].stamp, late.waiting[0].stamp
        gap = partner - first
        if gap > tolerance:
            frame = early.take()
            if late.started or gap > EDGE_NS:
                lost(frame)
            continue
        if gap and len(early.waiting) > 1:
            if abs(early.waiting[1].stamp - partner) < gap:  # the next frame is closer
                lost(early.take())
                continue
        elif gap and not ended:
            return
        yield sides[0].take(), sides[1].take()
