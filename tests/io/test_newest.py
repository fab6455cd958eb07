"""The newest frame wins, and a camera that is unplugged comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from aanet.errors import ReadError
from aanet.io import newest
from aanet.io.frames import StereoVideo
from aanet.io.newest import Captured, NewestFrames
from helpers.fake_camera import FakeCamera, until
from helpers.videos import flat_frames, write_video

Begin = Callable[..., NewestFrames]


@pytest.fixture
def camera() -> FakeCamera:
    return FakeCamera()


@pytest.fixture
def begin(camera: FakeCamera, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    monkeypatch.setattr(newest, "RETRY_SECONDS", 0.01)
    begun: list[NewestFrames] = []

    def start(**options: object) -> NewestFrames:
        begun.append(NewestFrames(camera.open, **options))  # type: ignore[arg-type]
        return begun[-1]

    yield start
    camera.ended = True
    for each in begun:
        each.close()
    assert not any(thread.name == "camera" for thread in threading.enumerate())


def value(captured: Captured | None) -> int:
    assert captured is not None
    return int(captured.frame.left[0, 0, 0])


def test_a_slow_reader_gets_the_newest_frame_and_none_twice(camera: FakeCamera, begin: Begin) -> None:
    seen: list[int] = []
    frames = begin(on_frame=lambda frame: seen.append(int(frame.left[0, 0, 0])))
    camera.deliver(1, 2, 3)
    until(lambda: len(seen) == 3)
    before = time.monotonic()
    captured = frames.take(10)
    assert value(captured) == 3
    assert captured is not None
    assert captured.at <= before
    assert frames.take(0.01) is None
    camera.deliver(4)
    assert value(frames.take(10)) == 4
    assert seen == [1, 2, 3, 4]


def test_an_unplugged_camera_is_reported_and_opened_again(camera: FakeCamera, begin: Begin) -> None:
    problems: list[str | None] = []
    frames = begin(reconnect=True, on_change=lambda: problems.append(frames.problem))
    camera.deliver(1)
    assert value(frames.take(10)) == 1
    camera.plugged = False
    until(lambda: frames.problem is not None and "cannot be opened" in frames.problem)
    assert problems[0] == (
        "Camera 7 delivers no more frames; is it still connected? Trying to open it again."
    )
    camera.plugged = True
    camera.deliver(2)
    assert value(frames.take(10)) == 2
    assert problems[-1] is None
    assert (camera.opened, camera.closed) == (2, 1)


def test_without_reconnection_the_error_comes_after_the_last_frame(camera: FakeCamera, begin: Begin) -> None:
    frames = begin()
    camera.deliver(1)
    until(lambda: camera.delivered == 1)
    camera.plugged = False
    until(lambda: camera.closed == 1)
    received = iter(frames)
    assert int(next(received).left[0, 0, 0]) == 1
    with pytest.raises(ReadError, match="still connected"):
        next(received)


def test_a_camera_that_cannot_be_opened_is_an_error_at_once(camera: FakeCamera) -> None:
    camera.plugged = False
    with pytest.raises(ReadError, match="does not exist"):
        NewestFrames(camera.open, reconnect=True)


def test_a_file_begins_again_at_its_end(tmp_path) -> None:
    path = write_video(tmp_path / "both.avi", flat_frames(3, 48, 128), fps=50)
    seen: list[float] = []
    frames = NewestFrames(
        lambda: StereoVideo(path), reconnect=True, on_frame=lambda frame: seen.append(frame.time)
    )
    until(lambda: len(seen) >= 4)
    frames.close()
    assert seen[:4] == pytest.approx([0, 0.02, 0.04, 0])
    assert frames.problem is None


def test_a_file_is_played_at_its_speed(tmp_path) -> None:
    path = write_video(tmp_path / "both.avi", flat_frames(3, 48, 128), fps=0.1)
    frames = NewestFrames(lambda: StereoVideo(path))
    assert value(frames.take(10)) == 0
    assert frames.take(0.1) is None  # the second frame is due in ten seconds
    frames.close()


def test_frames_are_not_kept(camera: FakeCamera, begin: Begin) -> None:
    import tracemalloc

    seen: list[float] = []
    begin(on_frame=lambda frame: seen.append(frame.time))
    tracemalloc.start()
    try:
        for count in range(1, 401):
            camera.deliver(count % 256)
            until(lambda count=count: len(seen) == count)
            if count == 100:
                early = tracemalloc.get_traced_memory()[0]
        late = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert late - early < 20 * 48 * 64 * 3  # of 300 frames
