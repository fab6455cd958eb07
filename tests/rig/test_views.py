from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from aanet.errors import InputError
from aanet.io.pairs import Pair, Pairs
from aanet.rig.corners import Corners, Gray
from aanet.rig.pattern import Pattern
from aanet.rig.views import collect_views

PATTERN = Pattern.parse("chessboard:4x3", 25)
SIZE = (100, 60)


def pairs_at(places: list[float | None], total: int | None = None) -> Pairs:
    """Pairs whose gray level stands for the place of the board; None is a pair without it."""
    levels = [0 if place is None else int(place) for place in places]
    pairs = [
        Pair(f"p{index}", lambda level=level: (np.full(SIZE[::-1], level, np.uint8),) * 2)
        for index, level in enumerate(levels)
    ]
    return Pairs(lambda: iter(pairs), total or len(pairs))


@pytest.fixture(autouse=True)
def _found_at_its_gray_level(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(gray: Gray, pattern: Pattern) -> Corners | None:
        shift = int(gray[0, 0])
        points = pattern.points[:, :2] * 400 + (shift, 5)
        return Corners(points, np.arange(len(points)), 2.0, False) if shift else None

    monkeypatch.setattr("aanet.rig.views.find_corners", find)
    monkeypatch.setattr("aanet.rig.views.find_other_board", lambda *_: None)


def test_a_board_that_has_not_moved_counts_once() -> None:
    views = collect_views(pairs_at([10, 10, 30, None, 10, 50]), PATTERN).views
    assert [view.in_both for view in views] == [True, False, True, False, False, True]
    assert [view.name for view in views if "where it was" in (view.reason or "")] == ["p1", "p4"]
    assert views[3].reason == "the board was not found in either image"


def test_many_views_are_thinned_out_evenly() -> None:
    views = collect_views(pairs_at([*range(1, 200, 2)]), PATTERN).views
    used = [index for index, view in enumerate(views) if view.in_both]
    assert len(used) == 80
    assert used[0] == 0
    assert used[-1] == 99
    assert max(np.diff(used)) == 2


def test_all_pairs_that_a_program_gives_are_examined() -> None:
    views = collect_views([*pairs_at([10, 30, 50, *[None] * 240])], PATTERN).views
    assert len(views) == 243
    assert sum(view.in_both for view in views) == 3


def test_a_stream_without_an_end_is_not_read_for_ever() -> None:
    loaded = []

    def frames() -> Iterator[Pair]:
        for index in itertools.count():
            yield Pair(
                f"{index}", lambda index=index: loaded.append(index) or (np.zeros((6, 8), np.uint8),) * 2
            )

    with pytest.raises(InputError, match="of 0 of 200 pairs"):
        collect_views(Pairs(frames, None), PATTERN)
    assert loaded == [*range(0, 3000, 15)]
