"""Frames come in pairs and in order, and what is wrong with a source is one sentence."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.errors import AanetError, InputError, ReadError
from aanet.io.frames import StereoVideo, frame_source_kind
from helpers.videos import FakeCapture, flat_frames, write_video


def values(video: StereoVideo) -> list[tuple[int, int]]:
    return [(round(frame.left.mean() / 10), round(frame.right.mean() / 10)) for frame in video]


def test_two_videos_are_read_frame_by_frame_and_again(tmp_path):
    left = write_video(tmp_path / "l.avi", flat_frames(4))
    right = write_video(tmp_path / "r.avi", flat_frames(4, first=100))
    video = StereoVideo(left, right)
    assert (video.name, video.total, video.fps, video.live) == ("l", 4, 10, False)
    expected = [(0, 10), (1, 11), (2, 12), (3, 13)]
    assert values(video) == values(video) == expected
    assert [frame.time for frame in video] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_a_wide_video_is_cut_in_the_middle(tmp_path):
    frames = [np.hstack([frame, frame + 100]) for frame in flat_frames(3)]
    with StereoVideo(write_video(tmp_path / "both.avi", frames)) as video:
        assert values(video) == [(0, 10), (1, 11), (2, 12)]
        assert next(iter(video)).left.shape == (48, 64, 3)


def test_a_sample_is_spread_over_the_video(tmp_path):
    video = StereoVideo(write_video(tmp_path / "both.avi", flat_frames(20, width=128)))
    assert [round(frame.left.mean() / 10) for frame in video.sample(4)] == [2, 7, 12, 17]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (0, "a camera"),
        ("1", "a camera"),
        ("/dev/video0", "a camera"),
        ("/dev/v4l/by-id/usb-camera", "a camera"),
        ("/dev/shm/left.png", None),
        ("rtsp://user:secret@host/live", "a stream"),
        ("clip.MP4", "a video"),
        (Path("clip.webm"), "a video"),
        ("left.png", None),
        ("folder", None),
        ("C:\\left.png", None),
    ],
)
def test_sources_are_told_apart(source, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert frame_source_kind(source) == kind


def test_a_file_named_like_a_camera_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("0").write_text("a file")
    assert frame_source_kind("0") is None


def test_a_camera_that_is_unplugged_is_reported_after_its_last_frame(monkeypatch):
    monkeypatch.setattr(cv2, "VideoCapture", FakeCapture)
    video = StereoVideo("7")
    assert (video.name, video.live, video.total, video.fps) == ("camera7", True, None, None)
    frames = []
    with pytest.raises(ReadError, match="Camera 7 delivers no more frames after 3; is it still connected"):
        frames.extend(video)
    assert [int(frame.left.max()) for frame in frames] == [2, 1, 0]  # the one read for the checks as well
    assert frames[0].time <= frames[1].time <= frames[2].time


class SizedCapture(FakeCapture):
    """A camera that has frames of 128×48 and of 256×48 pixels."""

    width = 128.0

    def set(self, name: int, value: float) -> bool:
        if name == cv2.CAP_PROP_FRAME_WIDTH:
            self.width = min(value, 256.0)
        return True

    def get(self, name: int) -> float:
        return {cv2.CAP_PROP_FRAME_WIDTH: self.width, cv2.CAP_PROP_FRAME_HEIGHT: 48.0}.get(name, 0.0)

    def retrieve(self) -> tuple[bool, np.ndarray]:
        return True, np.zeros((48, int(self.width), 3), np.uint8)


def test_a_camera_is_asked_for_frames_of_a_size(monkeypatch):
    monkeypatch.setattr(cv2, "VideoCapture", SizedCapture)
    with StereoVideo(0, camera_size=(256, 48)) as video:
        assert next(iter(video)).left.shape == (48, 128, 3)
    with pytest.raises(InputError, match="Camera 0 has no frames of 512×48 pixels; it would deliver 256×48"):
        StereoVideo(0, camera_size=(512, 48))


def test_videos_of_different_length_are_read_up_to_the_shorter_end(tmp_path):
    left = write_video(tmp_path / "l.avi", flat_frames(4))
    right = write_video(tmp_path / "r.avi", flat_frames(2))
    frames = []
    with pytest.raises(ReadError, match=r"r.avi ended after 2 frames, but .*l.avi goes on"):
        frames.extend(StereoVideo(left, right))
    assert len(frames) == 2


def test_a_video_that_is_cut_off_is_reported_after_its_last_frame(tmp_path):
    video = write_video(tmp_path / "both.avi", flat_frames(40, width=128))
    video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    frames = []
    with pytest.raises(ReadError, match=r"ended after \d+ of 40 frames: it is cut off or damaged"):
        frames.extend(StereoVideo(video))
    assert 5 < len(frames) < 30


def test_what_cannot_be_opened_is_one_sentence(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write_video(Path("small.avi"), flat_frames(2, 24, 32))
    write_video(Path("large.avi"), flat_frames(2))
    Path("text.mp4").write_text("not a video")
    for sources, message in (
        (("missing.mp4",), "missing.mp4 does not exist; expected a video"),
        (("text.mp4",), "is damaged, or OpenCV cannot decode"),
        (("93",), "Camera 93 cannot be opened: it does not exist, or another program uses it"),
        (("/dev/video93",), "/dev/video93 does not exist; expected a camera"),
        (("rtsp://me:secret@127.0.0.1:1/x",), "^rtsp://127.0.0.1:1/x cannot be opened: nothing answers"),
        (("file:///etc/passwd",), "begins with one of rtsp, .*; got file:///etc/passwd"),
        (("large.avi",), "64×48 pixels, too few columns .* give the source of the right side"),
        (("large.avi", "small.avi"), "left frames have 64×48 pixels, the right ones 32×24"),
        (("large.avi", "0"), "large.avi is a video, but 0 is a camera"),
        (("left.png",), r"Expected a video \(.mp4, .*; got 'left.png'"),
        ((-1,), "Expected a video"),
        ((True,), "Expected a video"),
    ):
        with pytest.raises(AanetError, match=message) as caught:
            StereoVideo(*sources)
        assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""  # no log of OpenCV or FFmpeg
