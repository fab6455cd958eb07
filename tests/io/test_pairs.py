"""Every way to name pairs finds them, and says what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.io.images import write_image
from aanet.io.pairs import find_pairs
from helpers.matching_network import textured_scene
from helpers.videos import write_video


def put(root: Path, *names: str) -> None:
    """Small images, each of one gray value of its own: the position in `names`."""
    for value, name in enumerate(names):
        write_image(root / name, np.full((4, 6), value, np.uint8))


def found(*arguments: object) -> dict[str, tuple[int, int]]:
    """Name → values of the left and the right image."""
    pairs = find_pairs(*(str(argument) for argument in arguments))
    result = {}
    for pair in pairs:
        left, right = pair.load()
        result[pair.name] = (int(left[0, 0]), int(right[0, 0]))
    assert pairs.total == len(result)
    return result


def test_two_files(tmp_path):
    put(tmp_path, "a.png", "b.png")
    assert found(tmp_path / "a.png", tmp_path / "b.png") == {"a": (0, 1)}


def test_two_folders_of_the_same_names(tmp_path):
    put(tmp_path, "l/1.png", "l/2.png", "r/1.jpg", "r/2.png")
    (tmp_path / "l" / "notes.txt").write_text("not an image")
    assert found(tmp_path / "l", tmp_path / "r") == {"1": (0, 2), "2": (1, 3)}


def test_two_folders_whose_names_tell_the_side(tmp_path):
    put(tmp_path, "l/left01.png", "l/left02.png", "r/right01.png", "r/right02.png")
    assert found(tmp_path / "l", tmp_path / "r") == {"left01": (0, 2), "left02": (1, 3)}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a_left.png", "a_right.png", "b_left.png", "b_right.png"), {"a_left": (0, 1), "b_left": (2, 3)}),
        (("left/1.png", "right/1.png", "other/1.png"), {"1": (0, 1)}),
        (("image_2/7_10.png", "image_3/7_10.png", "disp/7_10.png"), {"7_10": (0, 1)}),
        (("x/im0.png", "x/im1.png", "y/im0.png", "y/im1.png"), {"x/im0": (0, 1), "y/im0": (2, 3)}),
        (("s_l.png", "s_r.png"), {"s_l": (0, 1)}),
        (("left0001.png", "right0001.png"), {"left0001": (0, 1)}),
    ],
)
def test_one_folder_with_both_sides(tmp_path, names, expected):
    put(tmp_path, *names)
    assert found(tmp_path) == expected


def test_patterns_pair_what_the_wildcards_stand_for(tmp_path):
    put(tmp_path, "x/im0.png", "x/im1.png", "z/im0.png", "z/im1.png", "left_7.png", "right_7.png")
    assert found(tmp_path / "*/im0.png", tmp_path / "*/im1.png") == {"x/im0": (0, 1), "z/im0": (2, 3)}
    assert found(tmp_path / "[xy]/im0.png", tmp_path / "[xy]/im1.png") == {"im0": (0, 1)}
    assert found(tmp_path / "left_?.png", tmp_path / "right_?.png") == {"left_7": (4, 5)}


def test_a_table_with_paths_beside_it(tmp_path):
    put(tmp_path, "a.png", "b.png", "c/a.png", "c/b.png")
    table = tmp_path / "pairs.csv"
    table.write_text("\ufeffright, left\nb.png, a.png\nc/b.png, c/a.png\n")
    assert found(table) == {"a": (0, 1), "c/a": (2, 3)}
    table.write_text(f"left,right\n{tmp_path / 'a.png'},b.png\na.png,c/b.png\n")
    assert found(table) == {"000000_a": (0, 1), "000001_a": (0, 3)}


def test_names_never_lead_out_of_the_output_folder(tmp_path):
    put(tmp_path, "a/left.png", "a/right.png", "b/left.png", "b/right.png")
    table = tmp_path / "lists" / "pairs.csv"
    table.parent.mkdir()
    rows = ("../a/left.png,../a/right.png", "../lists/../b/left.png,../b/right.png")
    table.write_text("\n".join(("left,right", *rows)))
    assert found(table) == {"a/left": (0, 1), "b/left": (2, 3)}
    table.write_text(f"left,right\n../a/left.png,../a/right.png\n{tmp_path}/b/left.png,../b/right.png\n")
    assert found(table) == {"a/left": (0, 1), "b/left": (2, 3)}


def test_videos_are_pairs_of_frames(tmp_path):
    frames = [textured_scene(48, 64, seed) // 2 + 40 * seed for seed in range(3)]
    write_video(tmp_path / "l.avi", frames)
    write_video(tmp_path / "r.avi", frames[::-1])
    found = find_pairs(tmp_path / "l.avi", tmp_path / "r.avi")
    pairs = list(found)
    assert (found.name, found.total) == ("l", 3)
    assert [pair.name for pair in pairs] == ["frame_000000", "frame_000001", "frame_000002"]
    assert [pair.time for pair in pairs] == pytest.approx([0, 0.1, 0.2])
    left, right = pairs[0].load()
    assert left.shape == (48, 64, 3)
    assert np.abs(left.astype(int) - frames[0]).mean() < 12  # JPEG; red and blue in their places
    assert np.abs(right.astype(int) - frames[2]).mean() < 12


def test_a_wide_video_is_cut_in_the_middle(tmp_path):
    sides = [np.zeros((48, 64, 3), np.uint8), np.full((48, 64, 3), 200, np.uint8)]
    write_video(tmp_path / "both.avi", [np.hstack(sides)] * 2)
    pairs = find_pairs(tmp_path / "both.avi")
    assert pairs.total == 2
    left, right = next(iter(pairs)).load()
    assert left.shape == right.shape == (48, 64, 3)
    assert left.mean() < 5
    assert right.mean() > 190


def test_a_wide_image_is_cut_in_the_middle(tmp_path):
    sides = [np.full((4, 6), value, np.uint8) for value in (3, 7)]
    write_image(tmp_path / "both.png", np.hstack([*sides, sides[1][:, :1]]))  # an odd column at the end
    assert found(tmp_path / "both.png") == {"both": (3, 7)}
    (pair,) = find_pairs(tmp_path / "both.png")
    assert [image.shape for image in pair.load()] == [(4, 6), (4, 6)]


def test_files_without_a_partner_are_told(tmp_path):
    put(tmp_path, "l/1.png", "l/2.png", "r/1.png", "r/3.png")
    pairs = find_pairs(tmp_path / "l", tmp_path / "r")
    assert [pair.name for pair in pairs] == ["1"]
    assert [Path(file).name for file in pairs.unmatched] == ["2.png", "3.png"]


def test_what_cannot_be_paired_is_one_sentence(tmp_path):
    put(tmp_path, "l/a.png", "r/b.png", "odd/1.png", "odd/2.png", "a.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "video.mp4").write_text("not a video")
    (tmp_path / "no_columns.csv").write_text("a.png,b.png\n")
    (tmp_path / "no_pairs.csv").write_text("left,right\n")
    (tmp_path / "half.csv").write_text("left,right\na.png,\n")
    for arguments, message in (
        (("l", "r"), "do not match: for example, a.png and b.png are not a pair"),
        (("odd",), "has no pairs among its 2 images; expected folders left and right"),
        (("empty",), "has no pairs among its 0 images"),
        (("l", "empty"), "empty has no images"),
        (("a.png",), "6×4 pixels, too few columns .* give the image of the right side"),
        (("a.png", "l"), "is an image, but .* is a folder; both must be of one kind"),
        (("*.gif", "*.bmp"), "No file matches"),
        (("video.mp4",), "OpenCV cannot decode"),
        (("missing.mp4",), "does not exist; expected a video"),
        (("no_columns.csv",), "must name the columns left and right"),
        (("no_pairs.csv",), "lists no pairs"),
        (("half.csv",), "line 2: expected a left and a right file"),
        (("no_pairs.csv", "half.csv"), "A CSV file lists both sides"),
    ):
        with pytest.raises(AanetError, match=message):
            list(find_pairs(*(str(tmp_path / argument) for argument in arguments)))


def test_a_mutated_table_gives_pairs_or_our_error(tmp_path):
    valid = 'left,right,more\nl/0.png,r/0.png,1\n"l/1.png",r/1.png,2\n'
    pieces = ["\0", '"', ",", "\n", "\r", "/", "..", "é", "left", "x" * 140_000, " ", ";"]
    rng = np.random.default_rng(8)
    table = tmp_path / "pairs.csv"
    for _ in range(200):
        text = valid
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(0, len(text) + 1))
            text = text[:at] + str(rng.choice(pieces)) + text[at + int(rng.integers(0, 6)) :]
        table.write_bytes(text.encode())
        try:
            for pair in find_pairs(table):
                pair.load()
        except AanetError as error:
            assert "\n" not in str(error)  # noqa: PT017 - no image exists, so that most are refused
