"""`StereoMatcher.stream`: frames in, results out, one at a time."""

from __future__ import annotations

import gc
import weakref

import cv2
import numpy as np
import pytest

from aanet.errors import InputError, ReadError
from aanet.geometry.camera import StereoCamera
from aanet.io.frames import StereoVideo
from helpers.fake_engine import FakeEngine
from helpers.videos import flat_frames, write_video


def brightness(left: np.ndarray) -> np.ndarray:
    """A disparity that counts the frames."""
    return left[:, 0] * 25.5


def test_every_frame_of_a_video_is_a_result_with_its_time(tmp_path):
    video = write_video(tmp_path / "both.avi", flat_frames(4, 96, 256))
    camera = StereoCamera(fx=100, cx=64, cy=48, baseline_m=0.1, width=128, height=96)
    results = list(FakeEngine(brightness).matcher.stream(video, calibration=camera))
    assert [round(float(result.disparity.mean())) for result in results] == [0, 1, 2, 3]
    assert [result.time for result in results] == pytest.approx([0, 0.1, 0.2, 0.3])
    assert results[3].camera == camera


def test_two_videos_an_open_video_and_any_pairs(tmp_path):
    left = write_video(tmp_path / "l.avi", flat_frames(3, 96, 128))
    right = write_video(tmp_path / "r.avi", flat_frames(3, 96, 128, first=50))
    matcher = FakeEngine(brightness).matcher
    for results in (
        matcher.stream(left, right),
        matcher.stream(StereoVideo(left, right)),
        matcher.stream((frame, frame) for frame in flat_frames(3, 96, 128)),
    ):
        assert [round(float(result.disparity.mean())) for result in results] == [0, 1, 2]


class Capture:
    """A camera that delivers three frames at once and is then unplugged."""

    def __init__(self, _: object) -> None:
        self.frames = flat_frames(3, 96, 256)

    def isOpened(self) -> bool:
        return True

    def grab(self) -> bool:
        return bool(self.frames)

    def retrieve(self) -> tuple[bool, np.ndarray]:
        return True, self.frames.pop(0)

    def get(self, _: int) -> float:
        return 0.0

    def release(self) -> None:
        self.frames = []


def test_of_a_camera_the_newest_frame_is_matched(monkeypatch):
    monkeypatch.setattr(cv2, "VideoCapture", Capture)
    results = []
    with pytest.raises(ReadError, match="still connected"):
        results.extend(
            round(float(each.disparity.mean())) for each in FakeEngine(brightness).matcher.stream(0)
        )
    assert results in ([2], [0, 2], [1, 2], [0, 1, 2])  # as many as there was time for


def test_the_average_along_time_is_that_of_the_filter():
    values = iter([10.0, 10.4, 20.0])
    matcher = FakeEngine(lambda left: np.full_like(left[:, 0], next(values))).matcher
    frames = [(frame, frame) for frame in flat_frames(3, 96, 128)]
    means = [float(result.disparity.mean()) for result in matcher.stream(frames, temporal=0.5)]
    assert means == pytest.approx([10, 10.2, 20])


def test_only_the_first_frame_is_checked_unless_strict():
    frames = [(frame, frame) for frame in flat_frames(2, 96, 128)]
    first, second = FakeEngine(5.0).matcher.stream(frames)
    assert first.warnings
    assert not second.warnings
    results = FakeEngine(5.0).matcher.stream(frames, strict=True)
    with pytest.raises(InputError, match="same"):
        next(results)


@pytest.mark.slow
def test_results_and_frames_are_not_kept():
    matcher = FakeEngine(5.0).matcher
    alive = []
    for result in matcher.stream(((frame, frame) for frame in flat_frames(20, 96, 128)), temporal=0.4):
        alive.append(weakref.ref(result))
        del result
        gc.collect()
        assert sum(ref() is not None for ref in alive) <= 1


def test_mistakes_are_found_before_the_first_frame(tmp_path):
    matcher = FakeEngine(5.0).matcher
    with pytest.raises(ReadError, match=r"missing.mp4 does not exist"):
        matcher.stream(tmp_path / "missing.mp4")
    with pytest.raises(InputError, match="temporal weight"):
        matcher.stream([], temporal=2)
    with pytest.raises(InputError, match="pairs have both sides"):
        matcher.stream([], "right.mp4")
    with pytest.raises(InputError, match="no option 'skale'"):
        matcher.stream([], skale=1)
