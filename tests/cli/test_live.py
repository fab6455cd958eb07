"""`aanet live`: what is wrong is one sentence; `tests/web/test_live_page.py` watches it run."""

from __future__ import annotations

from pathlib import Path

import pytest

from aanet.cli import main as entry
from aanet.geometry.camera import StereoCamera
from helpers.videos import flat_frames, write_video

pytest.importorskip("uvicorn", reason="the extra web is not installed")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["93"], "Camera 93 cannot be opened: it does not exist, or another program uses it."),
        (["/dev/video93"], "/dev/video93 does not exist; expected a camera."),
        (["rtsp://me:secret@127.0.0.1:1/x"], "rtsp://127.0.0.1:1/x cannot be opened: nothing answers"),
        (["missing.mp4"], "missing.mp4 does not exist; expected a video."),
        (["both.avi", "0"], "both.avi is a video, but 0 is a camera; both must be of one kind."),
        (["both.avi", "--calib", "other.json"], "for images of 99×48 pixels; these have 64×48."),
        (["both.avi", "--calib", "missing.json"], "missing.json"),
        (["both.avi", "--size", "64"], "--size is WIDTHxHEIGHT, as in 2560x720; got '64'."),
        (["both.avi", "--size", "128x48"], "Only a camera can be asked for frames of a size; both.avi is a"),
        (["both.avi", "--temporal", "2"], "The temporal weight must be above 0 and at most 1; got 2.0."),
        (["both.avi", "--range", "9:3"], "The range of the colors must be LOW:HIGH in pixels"),
        (
            ["both.avi", "--range", "1:3m", "--model", "sgbm"],
            "A range of colors in meters needs a calibration",
        ),
        (["both.avi", "--host", "0.0.0.0"], "--host 0.0.0.0 accepts requests from other machines and"),
        (["both.avi", "--model", "nothing"], "nothing"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_2(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_video(Path("both.avi"), flat_frames(2, 48, 128))
    StereoCamera(fx=100, cx=32, cy=24, baseline_m=0.1, width=99, height=48).save("other.json")
    monkeypatch.setattr("sys.argv", ["aanet", "live", *arguments, "--port", "0"])
    with pytest.raises(SystemExit) as stop:
        entry.main()
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert sentence in captured.err
    assert "secret" not in captured.err
