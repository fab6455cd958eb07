"""Go through the photographs of a board and keep what both cameras, or one of them, saw of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.io.images import AnyImage, as_rgb8
from aanet.io.pairs import Pair, Pairs
from aanet.rig.corners import Corners, Gray, as_gray, find_corners, find_other_board
from aanet.rig.pattern import Pattern
from aanet.typing import Image

SIDES = ("left", "right")
FEWEST_PAIRS = 3  # without which nothing can be computed
_MOST_EXAMINED = 200  # pairs or frames
_ASSUMED_LENGTH = 3000  # frames of a video that does not state it
_MOST_VIEWS = 80  # more only take longer
_SAME_PLACE = 0.01  # of the image's width: a board that moved less is the same view
_EXAMPLES = 3  # images that are searched for another board if none has the right one


@dataclass(eq=False)
class View:
    """One pair of photographs: the corners in either, and why it is not used, if it is not."""

    name: str
    corners: list[Corners | None]  # left, right
    reason: str | None = None

    @property
    def in_both(self) -> bool:
        """Whether both cameras saw the board."""
        return all(corners is not None for corners in self.corners)


@dataclass
class Views:
    """All pairs that were examined, and what they have in common."""

    pattern: Pattern
    size: tuple[int, int]  # width and height of the images
    views: list[View]
    example: tuple[Image, Image]  # the pair in which the board is largest, or the first one

    def seen_by(self, side: int) -> list[View]:
        """The views in which one camera saw the board."""
        return [view for view in self.views if view.corners[side] is not None]

    def common(self, view: View) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
        """The numbers of the corners that both cameras saw, and where each of them did."""
        left, right = view.corners
        assert left is not None
        assert right is not None
        numbers = np.intersect1d(left.numbers, right.numbers)
        return numbers, [left.of(numbers), right.of(numbers)]


def collect_views(pairs: Pairs | Iterable[Pair], pattern: Pattern) -> Views:
    """Find the board in all pairs; refuse input that no calibration can come of."""
    if isinstance(pairs, Pairs) and pairs.unmatched:
        more = f" ({len(pairs.unmatched)} such images)" if len(pairs.unmatched) > 1 else ""
        raise InputError(f"{pairs.unmatched[0]} has no partner on the other side{more}; add or remove it.")
    collector = _Collector(pattern)
    for pair in _sampled(pairs):
        collector.add(pair)
    return collector.finish()


def _sampled(pairs: Pairs | Iterable[Pair]) -> Iterator[Pair]:
    """All pairs that a program gives, and evenly spaced ones of a long video or a large folder."""
    if not isinstance(pairs, Pairs):
        return iter(pairs)
    step = math.ceil((_ASSUMED_LENGTH if pairs.total is None else pairs.total) / _MOST_EXAMINED) or 1
    return itertools.islice(pairs, 0, step * _MOST_EXAMINED, step)


@dataclass
class _Collector:
    pattern: Pattern
    size: tuple[int, int] | None = None
    views: list[View] = field(default_factory=list)
    example: tuple[Image, Image] | None = None
    example_area: float = 0.0
    without: list[Gray] = field(default_factory=list)

    def add(self, pair: Pair) -> None:
        images = pair.load()
        self._check_sizes(pair.name, images)
        grays = [as_gray(image) for image in images]
        found = [find_corners(gray, self.pattern) for gray in grays]
        self.without += [gray for gray, corners in zip(grays, found, strict=True) if corners is None]
        self.without = self.without[:_EXAMPLES]
        sharp = [None if corners is None or corners.is_blurred else corners for corners in found]
        view = View(pair.name, sharp, _why_missing(found))
        if view.in_both and self.pattern.kind == "chessboard":
            _match_order(view, self.pattern)
        self._drop_repeated(view)
        self.views.append(view)
        area = _area(view.corners[0]) if view.in_both else 0.0
        if self.example is None or area > self.example_area:
            self.example = as_rgb8(images[0]), as_rgb8(images[1])
            self.example_area = area

    def _check_sizes(self, name: str, images: tuple[AnyImage, AnyImage]) -> None:
        for side, image in zip(SIDES, images, strict=True):
            size = (image.shape[1], image.shape[0])
            self.size = self.size or size
            if size != self.size:
                raise InputError(
                    f"All images must have one size: the {side} image of {name} has {size[0]}×{size[1]} "
                    f"pixels, the first one {self.size[0]}×{self.size[1]}."
                )

    def _drop_repeated(self, view: View) -> None:
        """Forget the corners of a board that is where it was before, as in neighboring frames of a video."""
        if not any(view.corners):
            return
        assert self.size is not None
        for earlier in self.views:
            if any(earlier.corners):
                moves = [_distance(*both) for both in zip(view.corners, earlier.corners, strict=True)]
                if max(moves) < _SAME_PLACE * self.size[0]:
                    view.reason = "the board is where it was in an earlier pair"
                    view.corners = [None, None]
                    return

    def finish(self) -> Views:
        if self.size is None or self.example is None:
            raise InputError("There are no pairs: the folder is empty, or no frame of the video can be read.")
        _thin_out(self.views)
        both = sum(view.in_both for view in self.views)
        if both < FEWEST_PAIRS:
            raise InputError(self._too_few(both))
        return Views(self.pattern, self.size, self.views, self.example)

    def _too_few(self, both: int) -> str:
        start = (
            f"The board ({self.pattern}) was found in both images of {both} of {len(self.views)} pairs, "
            f"and at least {FEWEST_PAIRS} are needed"
        )
        blurred = sum("blurred" in (view.reason or "") for view in self.views)
        if blurred:
            return f"{start}: it is blurred in {blurred}; hold it still, in better light and in focus."
        if not any(corners for view in self.views for corners in view.corners):
            others = (find_other_board(gray, self.pattern) for gray in self.without)
            other = next((other for other in others if other is not None), None)
            if other is not None:
                return f"{start}: the photographs show {other}; check the pattern."
        return (
            f"{start}; the whole board must be visible, flat and evenly lit, and the pattern must be right."
        )


def _why_missing(found: list[Corners | None]) -> str | None:
    """Why a pair cannot be used: its board was not found, or is blurred."""
    sides: dict[str, list[str]] = {}
    for side, corners in zip(SIDES, found, strict=True):
        if corners is None:
            sides.setdefault("was not found", []).append(side)
        elif corners.is_blurred:
            sides.setdefault(f"is blurred (edges of {corners.edge_px:.0f} px)", []).append(side)
    both = "either image" if sides.get("was not found") else "both images"
    parts = [
        f"{what} in {both if len(where) == 2 else f'the {where[0]} image'}" for what, where in sides.items()
    ]
    return f"the board {' and '.join(parts)}" if parts else None


def _distance(first: Corners | None, second: Corners | None) -> float:
    """Mean distance in pixels between two views of one camera; infinite if only one of them has the board."""
    if first is None or second is None:
        return 0.0 if first is second else math.inf
    numbers = np.intersect1d(first.numbers, second.numbers)
    if not len(numbers):
        return math.inf
    return float(np.linalg.norm(first.of(numbers) - second.of(numbers), axis=1).mean())


def _area(corners: Corners | None) -> float:
    return 0.0 if corners is None else float(np.prod(np.ptp(corners.points, axis=0)))


def _match_order(view: View, pattern: Pattern) -> None:
    """Number the right corners as the left ones: a board may look the same when it is turned.

    The detector tells a turned board by its colors, but not if both numbers of corners are odd or even.
    """
    left, right = view.corners
    assert left is not None
    assert right is not None
    columns, rows = pattern.corners
    grid = right.points.reshape(rows, columns, 2)
    turns = range(4) if rows == columns else (0, 2)
    turned = [np.rot90(grid, turn).reshape(-1, 2) for turn in turns]
    # The right way round, the board is only shifted from one image to the other.
    best = min(turned, key=lambda points: float(np.var(points - left.points, axis=0).sum()))
    view.corners[1] = Corners(np.ascontiguousarray(best), right.numbers, right.edge_px, right.is_blurred)


def _thin_out(views: list[View]) -> None:
    """Leave out views of a long video, evenly, so that the fit stays quick."""
    seen = [view for view in views if any(view.corners)]
    if len(seen) > _MOST_VIEWS:
        kept = {round(index) for index in np.linspace(0, len(seen) - 1, _MOST_VIEWS)}
        for index, view in enumerate(seen):
            if index not in kept:
                view.reason = f"{_MOST_VIEWS} views are enough"
                view.corners = [None, None]
