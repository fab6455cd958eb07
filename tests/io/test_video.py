"""Videos are written frame by frame, and are complete or marked as a part."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.errors import WriteError
from aanet.io.video import VideoFile
from helpers.matching_network import textured_scene
from helpers.videos import flat_frames


def read(path) -> list[float]:
    """The gray values of the frames."""
    capture, values = cv2.VideoCapture(str(path)), []
    while (got := capture.read())[0]:
        values.append(float(got[1].mean()))
    return values


def stepped_frames(count: int) -> list[np.ndarray]:
    """Frames of clearly different gray values: encoding twice changes them by a few."""
    return flat_frames(4 * count)[::4]


def test_a_video_has_its_name_when_it_is_complete(tmp_path):
    video = VideoFile(tmp_path / "new" / "color.mp4", 12.5)
    for frame in stepped_frames(5):
        video.write(frame)
        assert not video.path.exists()
    assert video.close(complete=True) == video.path
    assert read(video.path) == pytest.approx([0, 40, 80, 120, 160], abs=10)
    assert [file.name for file in video.path.parent.iterdir()] == ["color.mp4"]
    assert cv2.VideoCapture(str(video.path)).get(cv2.CAP_PROP_FPS) == 12.5


def test_odd_sizes_lose_nothing_and_colors_are_in_their_places(tmp_path):
    image = np.full((47, 63, 3), (200, 100, 30), np.uint8)
    video = VideoFile(tmp_path / "color.mp4", 10)
    video.write(image)
    video.close(complete=True)
    _, frame = cv2.VideoCapture(str(video.path)).read()
    assert frame.shape == (48, 64, 3)
    np.testing.assert_allclose(frame[:47, :63, ::-1], image, atol=6)


def test_a_part_is_continued(tmp_path):
    frames = stepped_frames(6)
    first = VideoFile(tmp_path / "color.mp4", 10, resume=True)
    assert not first.has_next
    for frame in frames[:4]:
        first.write(frame)
    assert first.close(complete=False) == tmp_path / "color.part.mkv"
    assert not first.path.exists()
    second = VideoFile(tmp_path / "color.mp4", 10, resume=True)
    reused = 0
    while second.has_next:
        second.reuse()
        reused += 1
    assert reused == 4
    for frame in frames[4:]:
        second.write(frame)
    assert second.close(complete=True) == second.path
    assert read(second.path) == pytest.approx([0, 40, 80, 120, 160, 200], abs=15)
    assert [file.name for file in tmp_path.iterdir()] == ["color.mp4"]


def test_a_video_is_continued_when_its_process_was_killed(tmp_path):
    killed = VideoFile(tmp_path / "killed" / "color.mp4", 10)
    scene = textured_scene(96, 160)
    frames = [np.roll(scene, 7 * index, axis=1) for index in range(150)]
    for frame in frames:
        killed.write(frame)
    (tmp_path / "color.part.mkv").write_bytes(killed.part.read_bytes())  # what is on the disk at this moment
    killed.close(complete=False)
    for attempt in range(2):
        video = VideoFile(tmp_path / "color.mp4", 10, resume=True)
        while video.has_next and (attempt or video.frames < 20):  # is killed again while it is continued
            video.reuse()
        if attempt == 0:
            assert video.frames == 20
    assert 90 <= video.frames < 150  # the last seconds were not on the disk
    for frame in frames[video.frames :]:
        video.write(frame)
    assert video.close(complete=True) == video.path
    assert len(read(video.path)) == 150
    assert sorted(file.name for file in tmp_path.iterdir()) == ["color.mp4", "killed"]


def test_a_damaged_part_is_begun_again(tmp_path):
    (tmp_path / "color.part.mkv").write_bytes(b"not a video")
    video = VideoFile(tmp_path / "color.mp4", 10, resume=True)
    assert not video.has_next
    video.write(flat_frames(1)[0])
    assert video.close(complete=True) == video.path
    assert [file.name for file in tmp_path.iterdir()] == ["color.mp4"]


def test_nothing_is_written_without_a_frame_or_twice(tmp_path):
    video = VideoFile(tmp_path / "color.mp4", 10)
    assert video.close(complete=True) is None
    assert list(tmp_path.iterdir()) == []
    video = VideoFile(tmp_path / "color.mp4", 10)
    video.write(flat_frames(1)[0])
    video.close(complete=True)
    assert video.close(complete=True) is None


def test_frames_of_another_size_are_refused_and_the_others_kept(tmp_path):
    video = VideoFile(tmp_path / "color.mp4", 10)
    video.write(flat_frames(1)[0])
    with pytest.raises(WriteError, match="its frames have 64×48 pixels, and frame 1 has 32×24"):
        video.write(flat_frames(1, 24, 32)[0])
    assert video.close(complete=False) == tmp_path / "color.part.mkv"


def test_a_video_that_could_not_be_written_is_an_error(tmp_path):
    """OpenCV does not say that the disk is full; the file is shorter."""
    old = tmp_path / "color.mp4"
    old.write_text("what was there before")
    video = VideoFile(old, 10)
    for frame in flat_frames(3):
        video.write(frame)
    video.frames += 2
    with pytest.raises(WriteError, match="only 3 of 5 frames could be written; is the disk full"):
        video.close(complete=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["color.mp4", "color.part.mkv"]
    assert old.read_text() == "what was there before"
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WriteError, match="Cannot write"):
        VideoFile(tmp_path / "file" / "color.mp4", 10).write(flat_frames(1)[0])
