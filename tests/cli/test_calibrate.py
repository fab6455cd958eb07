"""`aanet calibrate`: folders, videos, reports, exit codes and bad input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import Result
from numpy.typing import NDArray
from typer.testing import CliRunner

import aanet
from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.io.images import write_image
from helpers.rendered_rig import photographed_chessboard

BOARD = ["--pattern", "chessboard:9x6", "--square", "25"]
Photograph = NDArray[np.uint8]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


def write_pairs(folder: Path, pairs: Sequence[tuple[Photograph, Photograph]]) -> None:
    for index, pair in enumerate(pairs):
        for side, image in zip(("left", "right"), pair, strict=True):
            write_image(folder / side / f"{index:02d}.png", image)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pairs(tmp_path, photographed_chessboard(16)[2][4:13])
    return tmp_path


@pytest.mark.slow
def test_folders_become_a_file_a_picture_and_a_report(folder: Path) -> None:
    result = run(folder / "left", folder / "right", *BOARD, "-o", folder / "rig.yaml")
    assert result.exit_code == 0, result.output
    assert "Pairs: 8 of 9 used." in result.output
    assert "Baseline: 60" in result.output
    assert "This calibration is good." in result.output
    assert (folder / "rig.png").read_bytes().startswith(b"\x89PNG")
    assert aanet.load_calibration(folder / "rig.yaml").camera.baseline_m == pytest.approx(0.06, rel=0.01)


@pytest.mark.slow
def test_a_bad_calibration_exits_with_1_and_writes_the_report_only(folder: Path) -> None:
    arguments = [folder / "right", folder / "left", *BOARD, "-o", folder / "rig.yaml", "--json"]
    result = run(*arguments)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["good"] is False
    assert report["problems"] == ["The sides are swapped: the right images are from the left camera."]
    assert report["files"] == [str(folder / "rig.png")]
    assert not (folder / "rig.yaml").exists()
    assert run(*arguments, "--force", "--overwrite").exit_code == 1
    assert (folder / "rig.yaml").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["video", "folder", "two videos"])
def test_videos_and_side_by_side_frames_are_taken(kind: str, tmp_path: Path) -> None:
    pairs = photographed_chessboard(16)[2][4:13]
    if kind == "folder":
        for index, pair in enumerate(pairs):
            write_image(tmp_path / f"both/{index}.png", np.hstack(pair))
        sources: list[object] = [tmp_path / "both", "--side-by-side"]
    elif kind == "video":
        write_video(tmp_path / "both.avi", [np.hstack(pair) for pair in pairs for _ in range(2)])
        sources = [tmp_path / "both.avi", "--side-by-side"]
    else:
        for side in range(2):
            write_video(tmp_path / f"{side}.avi", [pair[side] for pair in pairs])
        sources = [tmp_path / "0.avi", tmp_path / "1.avi"]
    result = run(*sources, *BOARD, "-o", tmp_path / "rig.yaml", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["pairs_used"] == 8
    assert report["baseline_mm"] == pytest.approx(60, rel=0.01)
    if kind == "video":  # every frame was in it twice
        reasons = [pair["reason"] for pair in report["pairs"]]
        assert sum("is where it was" in (reason or "") for reason in reasons) == 9


def write_video(path: Path, frames: list[Photograph]) -> None:
    height, width = frames[0].shape
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (width, height))
    for frame in frames:
        writer.write(cv2.cvtColor(frame, cv2.COLOR_GRAY2BGR))
    writer.release()


def gray(height: int = 120, width: int = 160) -> Photograph:
    return np.random.default_rng(0).integers(90, 160, (height, width), np.uint8)


def no_boards(folder: Path) -> list[object]:
    write_pairs(folder, [(gray(), gray())] * 4)
    return [folder / "left", folder / "right", *BOARD]


def missing_partner(folder: Path) -> list[object]:
    arguments = no_boards(folder)
    (folder / "right/02.png").unlink()
    return arguments


def other_size(folder: Path) -> list[object]:
    write_pairs(folder, [(gray(), gray()), (gray(), gray(100, 160))])
    return [folder / "left", folder / "right", *BOARD]


def blurred(folder: Path) -> list[object]:
    sharp = photographed_chessboard(16)[2][4:7]
    pairs = [(soft(left), soft(right)) for left, right in sharp]
    write_pairs(folder, pairs)
    return [folder / "left", folder / "right", *BOARD]


def soft(image: Photograph) -> Photograph:
    return cv2.GaussianBlur(image, (0, 0), 4).astype(np.uint8)


def wrong_pattern(folder: Path) -> list[object]:
    write_pairs(folder, photographed_chessboard(16)[2][4:7])
    return [folder / "left", folder / "right", "--pattern", "chessboard:8x5", "--square", "25"]


def unreadable_video(folder: Path) -> list[object]:
    (folder / "a.mp4").write_bytes(b"not a video")
    return [folder / "a.mp4", "--side-by-side", *BOARD]


def empty_folder(folder: Path) -> list[object]:
    (folder / "both").mkdir()
    return [folder / "both", "--side-by-side", *BOARD]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(
            no_boards,
            "found in both images of 0 of 4 pairs, and at least 3 are needed; the whole board must",
            marks=pytest.mark.slow,
        ),
        (missing_partner, "02.png has no partner on the other side; add or remove it."),
        (other_size, "the right image of 01 has 160×100 pixels, the first one 160×120"),
        pytest.param(blurred, "it is blurred in 3; hold it still", marks=pytest.mark.slow),
        pytest.param(wrong_pattern, "the photographs show chessboard:", marks=pytest.mark.slow),
        (unreadable_video, "a.mp4 is damaged, or OpenCV cannot decode its format"),
        (empty_folder, "both has no images"),
    ],
)
def test_bad_input_is_one_sentence(make: object, sentence: str, tmp_path: Path) -> None:
    assert callable(make)
    result = run(*make(tmp_path), "-o", tmp_path / "rig.yaml")
    assert isinstance(result.exception, AanetError)
    assert sentence in str(result.exception)
    assert not (tmp_path / "rig.yaml").exists()
    assert not (tmp_path / "rig.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a", "b", *BOARD, "--side-by-side"], "leave out the second one"),
        (["a", "b", *BOARD, "-o", "rig.xml"], "written as .yaml or .yml; got rig.xml"),
        (["a", "b", "--pattern", "chess", "--square", "25"], "got 'chess'"),
        (["board", "--square", "40"], "too much for a4 paper"),
    ],
)
def test_bad_options_are_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert isinstance(result.exception, AanetError)
    assert sentence in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_the_length_of_a_square_is_never_assumed() -> None:
    result = run("left", "right", "--pattern", "chessboard:9x6")
    assert result.exit_code == 2
    assert "--square" in result.output


def test_the_board_is_written_as_pdf(tmp_path: Path) -> None:
    path = tmp_path / "board.pdf"
    result = run("board", "--pattern", "charuco:5x7", "--square", "30", "--dictionary", "5X5_100", "-o", path)
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"%PDF-")
    assert b"--dictionary 5x5_100 --marker 22.5" in path.read_bytes()
