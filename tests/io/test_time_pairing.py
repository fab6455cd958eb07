"""Frames of two cameras are paired with the closest ones, and nothing piles up."""

from __future__ import annotations

import pytest

from aanet.io import time_pairing
from aanet.io.time_pairing import StampedFrame, pair_by_time

MS = 10**6


def pair(
    left: list[int], right: list[int], tolerance: int = 10, size: int = 1
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs and lost frames, in milliseconds; the frames arrive in order of time."""
    frames = [
        StampedFrame(side, stamp * MS, None, size)
        for stamp, side in sorted([*((stamp, 0) for stamp in left), *((stamp, 1) for stamp in right)])
    ]
    lost: list[StampedFrame] = []
    found = [
        (first.stamp // MS, second.stamp // MS)
        for first, second in pair_by_time(frames, tolerance * MS, lost.append)
    ]
    return found, [(frame.side, frame.stamp // MS) for frame in lost]


def test_equal_and_almost_equal_stamps_are_pairs():
    assert pair([0, 33, 66], [0, 33, 66]) == ([(0, 0), (33, 33), (66, 66)], [])
    assert pair([0, 33, 66], [4, 30, 66]) == ([(0, 4), (33, 30), (66, 66)], [])


def test_the_tolerance_is_the_largest_difference():
    assert pair([0, 100, 200], [10, 111, 200]) == ([(0, 10), (200, 200)], [(0, 100), (1, 111)])


def test_the_closest_frame_is_the_partner():
    assert pair([0, 8, 16], [9, 16], tolerance=10) == ([(8, 9), (16, 16)], [(0, 0)])
    assert pair([9, 16], [0, 8, 16], tolerance=10) == ([(9, 8), (16, 16)], [(1, 0)])


def test_a_lost_frame_is_reported():
    assert pair([0, 33, 66], [0, 66]) == ([(0, 0), (66, 66)], [(0, 33)])


def test_cameras_that_start_and_stop_within_a_second_miss_nothing():
    assert pair([0, 500, 1000, 1500], [500, 1000]) == ([(500, 500), (1000, 1000)], [])
    found, lost = pair([0, 100, 1500, 3000, 3500], [1500, 2000])
    assert (found, lost) == ([(1500, 1500)], [(0, 0), (0, 100), (1, 2000), (0, 3500)])


def test_a_repeated_frame_has_no_partner():
    assert pair([0, 33, 33, 66], [0, 33, 66]) == ([(0, 0), (33, 33), (66, 66)], [(0, 33)])


def test_frames_that_wait_for_a_silent_camera_are_bounded(monkeypatch):
    monkeypatch.setattr(time_pairing, "_MOST_WAITING", 10)
    found, lost = pair(list(range(0, 100_000, 33)), [0, 99_990], size=4)
    assert found == [(0, 0), (99_990, 99_990)]
    assert len(lost) == len(range(0, 100_000, 33)) - 2


@pytest.mark.parametrize("late", [1, 40, 400])
def test_a_camera_may_deliver_late(late):
    stamps = range(0, 2000, 33)
    frames = [(stamp, 0, stamp) for stamp in stamps] + [(stamp + late, 1, stamp) for stamp in stamps]
    stream = [StampedFrame(side, stamp * MS, None, 1) for _, side, stamp in sorted(frames)]
    lost: list[StampedFrame] = []
    assert len(list(pair_by_time(stream, 0, lost.append))) == len(stamps)
    assert lost == []
