"""The outcome of pairs that were matched and saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_LISTED_FRAMES = 1000  # of a video, with warnings or errors, so that the memory for hours of it is bounded


@dataclass
class Done:
    """The outcome of one pair."""

    name: str
    files: list[str] = field(default_factory=list)
    matching_seconds: float = 0.0
    wall_seconds: float = 0.0  # with reading, checking and saving
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    camera: dict[str, float | None] | None = None  # of the rectified pair
    error: str | None = None
    skipped: bool = False
    time: float | None = None  # of a frame, in seconds since the beginning; the time stamp of a recording
    width: int | None = None  # of the disparity map, and likewise:
    height: int | None = None
    mean_confidence: float | None = None
    written_bytes: int = 0
    processing: dict[str, Any] | None = None  # what was done to the images and to the disparity


@dataclass
class Summary:
    """The outcome of all pairs; of a video, only frames with warnings or errors are listed."""

    pairs: list[Done] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    videos: list[str] = field(default_factory=list)
    matched: int = 0
    skipped: int = 0
    failed: int = 0
    matching_seconds: float = 0.0  # of the matched pairs, and likewise:
    pair_seconds: float = 0.0  # with reading, checking and saving
    wall_seconds: float = 0.0
    error: str | None = None  # of the source of the frames
    interrupted: bool = False

    def add(self, done: Done, of_video: bool) -> None:
        """Count a pair, and list it."""
        self.count(done)
        noteworthy = done.error is not None or done.warnings
        if not of_video or (noteworthy and len(self.pairs) < _LISTED_FRAMES):
            self.pairs.append(done)

    def count(self, done: Done) -> None:
        """Count a pair without keeping it."""
        self.failed += done.error is not None
        self.skipped += done.skipped
        if done.error is None and not done.skipped:
            self.matched += 1
            self.matching_seconds += done.matching_seconds
            self.pair_seconds += done.wall_seconds
