"""`aanet predict` on videos and cameras: videos out, one color scale, resuming, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from aanet.cli.main import app
from aanet.errors import AanetError, WriteError
from aanet.geometry.camera import StereoCamera
from aanet.io.disparity import read_disparity
from aanet.io.images import read_image, write_image
from aanet.matcher import StereoMatcher
from aanet.prediction.outcome import Done, Summary
from aanet.viz import colorize_disparity
from helpers.matching_network import plane
from helpers.videos import FakeCapture, write_video

SGBM = ["--model", "sgbm", "--max-disparity", 32]


def inside(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["predict", *(str(argument) for argument in arguments)])
    if isinstance(result.exception, AanetError):
        raise result.exception
    return result


@pytest.fixture
def clip(tmp_path) -> Path:
    """Eight side-by-side frames of planes whose disparity grows from 6 to 20."""
    frames = [np.hstack(plane(64, 128, 6 + 2 * index, index)) for index in range(8)]
    return write_video(tmp_path / "both.avi", frames, fps=5)


def count(video: Path) -> int:
    capture, frames = cv2.VideoCapture(str(video)), 0
    while capture.read()[0]:
        frames += 1
    return frames


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_video_becomes_videos(clip, tmp_path):
    StereoCamera(fx=100, cx=64, cy=32, baseline_m=0.12, width=128, height=64).save(tmp_path / "c.json")
    out, save = tmp_path / "out", "color.mp4,depth_color.mp4,panel.mp4"
    done = inside(clip, *SGBM, "--calib", tmp_path / "c.json", "--save", save, "-o", out, "--json")
    assert done.exit_code == 0
    facts = json.loads(done.stdout)
    assert (facts["matched"], facts["failed"], facts["pairs"]) == (8, 0, [])
    assert names(out) == ["both_color.mp4", "both_depth_color.mp4", "both_panel.mp4"]
    assert facts["videos"] == [str(out / f"both_{name}") for name in save.split(",")]
    for name in names(out):
        assert count(out / name) == 8
        assert cv2.VideoCapture(str(out / name)).get(cv2.CAP_PROP_FPS) == 5


def test_all_frames_of_a_video_have_one_color_scale(clip, tmp_path):
    inside(clip, *SGBM, "--save", "color,disparity.npy", "-o", tmp_path)
    pictures = [read_image(tmp_path / f"frame_{i:06d}_color.png") for i in range(8)]
    maps = [np.load(tmp_path / f"frame_{i:06d}_disparity.npy") for i in range(8)]
    assert all(np.array_equal(picture[:, 128:], pictures[0][:, 128:]) for picture in pictures)  # the scale
    colors = [tuple(np.median(picture[:, 40:128].reshape(-1, 3), axis=0)) for picture in pictures]
    assert len(set(colors)) == 8  # each frame would be of one color if the scale were its own
    means = [float(np.median(each)) for each in maps]
    assert means == sorted(means)


def test_a_given_range_holds_for_folders_too_and_all_is_a_sample(tmp_path):
    for index in range(3):
        for side, image in zip(("left", "right"), plane(64, 128, 6 + 4 * index, index), strict=True):
            write_image(tmp_path / side / f"{index}.png", image)

    def pictures(folder: str, *options: object) -> list[np.ndarray]:
        out = tmp_path / folder
        inside(tmp_path, *SGBM, "--save", "color,disparity.npy", "-o", out, *options)
        return [read_image(out / f"{index}_color.png") for index in range(3)]

    fixed = pictures("fixed", "--range", "2:20")
    for index, picture in enumerate(fixed):
        disparity = np.load(tmp_path / "fixed" / f"{index}_disparity.npy")
        np.testing.assert_array_equal(picture[:, :128], colorize_disparity(disparity, 2, 20))
    together = pictures("all", "--range", "all")
    assert all(np.array_equal(picture[:, 128:], together[0][:, 128:]) for picture in together)
    apart = pictures("auto")
    assert not np.array_equal(apart[0][:, 128:], apart[2][:, 128:])


def test_stills_become_a_video_when_asked(tmp_path):
    for index in range(3):
        for side, image in zip(("left", "right"), plane(64, 128, 10, index), strict=True):
            write_image(tmp_path / side / f"{index}.png", image)
    inside(tmp_path, *SGBM, "--save", "color.mp4", "-o", tmp_path / "out", "--fps", 4)
    video = tmp_path / "out" / "pairs_color.mp4"
    assert count(video) == 3
    assert cv2.VideoCapture(str(video)).get(cv2.CAP_PROP_FPS) == 4


def test_the_average_along_time_changes_a_still_scene_less(tmp_path):
    rng = np.random.default_rng(0)
    scene = np.hstack(plane(64, 128, 12)).astype(float)
    noisy = [
        np.clip(scene + 20 * rng.standard_normal(scene.shape), 0, 255).astype(np.uint8) for _ in range(5)
    ]
    clip = write_video(tmp_path / "both.avi", noisy)

    def flicker(folder: str, *options: object) -> float:
        inside(clip, *SGBM, "--save", "disparity.npy", "-o", tmp_path / folder, *options)
        maps = np.stack([np.load(file) for file in sorted((tmp_path / folder).iterdir())])
        return float(np.abs(np.diff(maps, axis=0)).mean())

    assert flicker("average", "--temporal", 0.4) < 0.6 * flicker("plain")


def test_a_limit_of_frames(clip, tmp_path):
    inside(clip, *SGBM, "--save", "disparity,color.mp4", "--frames", 3, "-o", tmp_path / "out")
    assert names(tmp_path / "out") == [
        "both_color.mp4",
        *(f"frame_{index:06d}_disparity.png" for index in range(3)),
    ]
    assert count(tmp_path / "out" / "both_color.mp4") == 3


def interrupt_after(monkeypatch, calls: int, error: BaseException) -> None:
    """Let the matcher raise after some calls."""
    match, made = StereoMatcher.__call__, []

    def counted(self, *arguments, **options):
        made.append(1)
        if len(made) > calls:
            raise error
        return match(self, *arguments, **options)

    monkeypatch.setattr(StereoMatcher, "__call__", counted)


@pytest.mark.parametrize("save", ["color.mp4", "color.mp4,disparity"])
def test_an_interrupted_video_is_continued(clip, tmp_path, monkeypatch, save):
    out, options = tmp_path / "out", [*SGBM, "--save", save, "--range", "2:30", "--resume"]
    with monkeypatch.context() as patch:
        interrupt_after(patch, 5, KeyboardInterrupt())
        stopped = inside(clip, *options, "-o", out)
    assert stopped.exit_code == 130
    assert count(out / "both_color.part.mkv") == 5
    assert not (out / "both_color.mp4").exists()
    facts = json.loads(inside(clip, *options, "-o", out, "--json").stdout)
    assert (facts["skipped"], facts["matched"]) == (5, 3)
    assert count(out / "both_color.mp4") == 8
    assert not (out / "both_color.part.mkv").exists()
    again = json.loads(inside(clip, *options, "-o", out, "--json").stdout)
    assert (again["skipped"], again["matched"], again["videos"]) == (8, 0, [])


def test_a_complete_video_is_not_replaced_unless_asked(clip, tmp_path):
    options = [clip, *SGBM, "--save", "color.mp4", "--frames", 2, "--range", "2:30", "-o", tmp_path]
    inside(*options)
    before = (tmp_path / "both_color.mp4").read_bytes()
    with pytest.raises(WriteError, match=r"both_color.mp4 already exists"):
        inside(*options)
    assert (tmp_path / "both_color.mp4").read_bytes() == before
    assert inside(*options, "--overwrite").exit_code == 0


def test_a_video_that_is_cut_off_loses_nothing_and_exits_with_2(tmp_path):
    frames = [np.hstack(plane(64, 128, 10, index)) for index in range(12)]
    clip = write_video(tmp_path / "both.avi", frames)
    clip.write_bytes(clip.read_bytes()[: clip.stat().st_size // 2])
    done = inside(clip, *SGBM, "--save", "color.mp4", "-o", tmp_path / "out", "--json")
    assert done.exit_code == 2
    facts = json.loads(done.stdout)
    assert "of 12 frames: it is cut off or damaged." in facts["error"]
    assert done.stderr.strip().endswith(facts["error"])
    assert count(tmp_path / "out" / "both_color.mp4") == facts["matched"] > 2


def test_videos_of_different_length_are_matched_to_the_shorter_end(tmp_path):
    sides = [plane(64, 128, 10, index) for index in range(4)]
    left = write_video(tmp_path / "l.avi", [left for left, _ in sides])
    right = write_video(tmp_path / "r.avi", [right for _, right in sides[:3]])
    done = inside(left, right, *SGBM, "--save", "disparity", "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert "r.avi ended after 3 frames, but" in done.stderr
    assert len(names(tmp_path / "out")) == 3
    assert np.median(read_disparity(tmp_path / "out" / "frame_000002_disparity.png")[:, 16:]) == 10


def test_a_camera_ends_with_ctrl_c_and_its_video_is_complete(tmp_path, monkeypatch):
    frame = np.ascontiguousarray(np.hstack(plane(64, 128, 10))[:, :, ::-1])

    class Camera(FakeCapture):
        def grab(self) -> bool:
            if not super().grab():
                raise KeyboardInterrupt
            return True

        def retrieve(self) -> tuple[bool, np.ndarray]:
            return True, frame

    monkeypatch.setattr("aanet.io.frames.cv2.VideoCapture", Camera)
    # Reads through the same class.
    monkeypatch.setattr("aanet.io.video.VideoFile._require_all_frames", lambda _: None)
    done = inside("0", *SGBM, "--save", "color.mp4", "-o", tmp_path / "out")
    assert done.exit_code == 130
    assert names(tmp_path / "out") == ["camera0_color.mp4"]


def test_the_summary_of_hours_of_video_is_short():
    summary = Summary()
    for index in range(5000):
        summary.add(Done(f"frame_{index}", ["file"], 0.5, 0.6), of_video=True)
    for index in range(5000):
        summary.add(Done(f"frame_{index}", error="unusable"), of_video=True)
    assert (summary.matched, summary.failed) == (5000, 5000)
    assert len(summary.pairs) == 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["both.avi", "--save", "disparity.mp4"], "disparity cannot be saved as a video; color.mp4, .* can"),
        (["both.avi", "--save", "depth_color.mp4"], "Saving depth_color.mp4 needs a calibration"),
        (["both.avi", "--save", "colour.mp4"], "no output 'colour.mp4'"),
        (["both.avi", "--temporal", "2"], "temporal weight must be above 0 and at most 1"),
        (["both.avi", "--range", "near"], "range of the colors must be LOW:HIGH in pixels"),
        (["both.avi", "--min-confidence", "7"], "min_confidence must be from 0 to 1"),
        (["both.avi", "--max-depth", "0"], "max_depth must be above 0"),
        (["left.png", "right.png", "--temporal", "0.4"], "--temporal needs the frames of a video"),
        (["93"], "Camera 93 cannot be opened"),
        (["missing.mp4"], "missing.mp4 does not exist; expected a video"),
        (["both.avi", "--calib", "small.json"], "for images of 8×8 pixels; these have 128×64"),
    ],
)
@pytest.mark.usefixtures("clip")
def test_what_the_user_can_mend_is_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for side, image in zip(("left.png", "right.png"), plane(64, 128, 10), strict=True):
        write_image(side, image)
    StereoCamera(fx=1, cx=1, cy=1, baseline_m=1, width=8, height=8).save("small.json")
    with pytest.raises(AanetError, match=message):
        inside(*arguments, *SGBM, "-o", "out")
    assert not Path("out").exists()
