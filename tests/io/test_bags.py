"""Recordings of ROS 1 and ROS 2 are stereo pairs with time stamps, whatever happened to them."""

from __future__ import annotations

import os
import random
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from aanet.errors import AanetError, InputError, MissingExtraError, ReadError
from aanet.io.bags import StereoBag, is_recording
from aanet.io.images import encode_image
from fuzz.mutation import mutate_bytes
from helpers.recordings import START, Format, Messages, gray_frames, write_recording

FORMATS: list[Format] = ["bag", "mcap", "db3"]
LEFT, RIGHT = "/stereo/left/image_raw", "/stereo/right/image_raw"
THREE = [(LEFT, 1.0), (RIGHT, 1.001), (LEFT, 1.1), (RIGHT, 1.1), (RIGHT, 1.2), (LEFT, 1.203)]


def recording(
    root: Path, form: Format, times: list[tuple[str, float]] = THREE, compression: str | None = None
) -> Path:
    path = root / ("drive.bag" if form == "bag" else "drive")
    return write_recording(path, gray_frames(form, times), form, compression)


def values(bag: StereoBag) -> dict[str, tuple[int, int]]:
    """Name → values of the left and the right image."""
    found = {}
    for pair in bag:
        left, right = pair.load()
        assert left.shape == right.shape == (6, 8)
        found[pair.name] = (int(left[0, 0]), int(right[0, 0]))
    return found


EXPECTED = {
    f"{START + 1}.000000000": (0, 1),
    f"{START + 1}.100000000": (2, 3),
    f"{START + 1}.203000000": (5, 4),
}


@pytest.mark.parametrize("form", FORMATS)
def test_pairs_have_time_stamps(tmp_path, form):
    path = recording(tmp_path, form)
    assert is_recording(path)
    bag = StereoBag(path)
    assert (bag.name, bag.topics, bag.total, bag.rectified) == ("drive", (LEFT, RIGHT), 3, False)
    assert values(bag) == EXPECTED
    assert values(bag) == EXPECTED  # again
    assert bag.unmatched == []
    assert bag.camera_info is None
    assert bag.fps == pytest.approx(2 / 0.203, rel=1e-6)
    assert [pair.stamp_ns - START * 10**9 for pair in bag] == [1_000_000_000, 1_100_000_000, 1_203_000_000]


@pytest.mark.parametrize(
    ("form", "compression"),
    [
        ("bag", "bz2"),
        ("bag", "lz4"),
        ("mcap", "storage"),
        ("mcap", "message"),
        ("db3", "message"),
        ("db3", "file"),
    ],
)
def test_compressed_recordings(tmp_path, form, compression):
    assert values(StereoBag(recording(tmp_path, form, compression=compression))) == EXPECTED


@pytest.mark.parametrize("form", ["mcap", "db3"])
def test_a_file_of_ros_2_alone(tmp_path, form):
    file = recording(tmp_path, form) / f"drive.{form}"
    assert is_recording(file)
    assert values(StereoBag(file)) == EXPECTED


def test_a_frame_without_a_partner_is_skipped_and_counted(tmp_path):
    times = [(LEFT, 1.0), (RIGHT, 1.0), (LEFT, 1.1), (LEFT, 1.2), (RIGHT, 1.215), (LEFT, 1.3), (RIGHT, 1.3)]
    bag = StereoBag(recording(tmp_path, "bag", times))
    assert list(values(bag).values()) == [(0, 1), (5, 6)]
    lost = [
        f"{LEFT} {START + 1}.100000000",
        f"{LEFT} {START + 1}.200000000",
        f"{RIGHT} {START + 1}.215000000",
    ]
    assert sorted(bag.unmatched) == lost
    assert list(values(StereoBag(bag.path, tolerance=0.02)).values()) == [(0, 1), (3, 4), (5, 6)]


def test_no_pairs_at_all(tmp_path):
    bag = StereoBag(recording(tmp_path, "bag", [(LEFT, 1), (RIGHT, 1.5), (LEFT, 2)]))
    with pytest.raises(ReadError, match=r"no frames of .* within 0.01 s of each other; --tolerance SECONDS"):
        list(bag)
    with pytest.raises(InputError, match="0 to 1 seconds"):
        StereoBag(bag.path, tolerance=-1)


def test_named_topics_and_a_compressed_one(tmp_path):
    ros = Messages("mcap")
    picture = ros.compressed(encode_image(np.full((6, 8), 9, np.uint8), ".png"), "mono8; png compressed ", 1)
    frames = [*gray_frames("mcap", [("/a/image", 1)]), ("/b/image/compressed", 1, picture)]
    path = write_recording(tmp_path / "drive", frames, "mcap")
    assert list(values(StereoBag(path, ("/b/image", "/a/image"))).values()) == [(9, 0)]
    with pytest.raises(InputError, match="Both topics are /a/image"):
        StereoBag(path, ("/a/image", "/a/image"))
    with pytest.raises(InputError, match="its image topics are: /a/image, /b/image/compressed"):
        StereoBag(path, ("/c/image", "/a/image"))


def test_a_recording_without_images_lists_its_topics(tmp_path):
    path = write_recording(
        tmp_path / "drive.bag", [("/info", 1, Messages("bag").camera_info(8, 6, 5, 0))], "bag"
    )
    with pytest.raises(InputError, match=r"drive.bag has no image topics; its topics are: /info\."):
        StereoBag(path)


@pytest.mark.parametrize("form", FORMATS)
def test_the_first_camera_info_of_both_cameras_is_read(tmp_path, form):
    ros = Messages(form)
    frames = gray_frames(form, THREE)
    infos = [
        (f"/stereo/{side}/camera_info", seconds, ros.camera_info(8, 6, 10 + seconds, baseline, seconds))
        for seconds in (1, 2)
        for side, baseline in (("left", 0.0), ("right", 0.2))
    ]
    path = tmp_path / ("drive.bag" if form == "bag" else "drive")
    bag = StereoBag(write_recording(path, [*frames, *infos], form))
    assert bag.camera_info is not None
    assert [
        "P: [11.0, 0.0, 4.0, -0.0," in bag.camera_info[0],
        "P: [11.0, 0.0, 4.0, -2.2," in bag.camera_info[1],
    ] == [True] * 2


def test_one_camera_info_is_none(tmp_path):
    info = ("/stereo/left/camera_info", 1, Messages("bag").camera_info(8, 6, 5, 0))
    bag = StereoBag(write_recording(tmp_path / "drive.bag", [info, *gray_frames("bag", THREE)], "bag"))
    assert bag.camera_info is None


@pytest.mark.parametrize("form", FORMATS)
def test_a_sample_is_distributed_over_the_recording(tmp_path, form):
    times = [(topic, 1 + index / 10) for index in range(40) for topic in (LEFT, RIGHT)]
    bag = StereoBag(recording(tmp_path, form, times))
    stamps = [(pair.stamp_ns - START * 10**9) / 1e9 for pair in bag.sample(4)]
    assert stamps == pytest.approx([1, 2, 3, 4])
    assert bag.unmatched == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_message_is_skipped(tmp_path, form):
    frames = gray_frames(form, THREE)
    frames[2] = (LEFT, 1.1, b"\x00\x01\x00\x00damaged")
    path = tmp_path / ("drive.bag" if form == "bag" else "drive")
    bag = StereoBag(write_recording(path, frames, form))
    assert list(values(bag).values()) == [(0, 1), (5, 4)]
    assert bag.unmatched == [f"{LEFT} {START + 1}.100000000", f"{RIGHT} {START + 1}.100000000"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_off_is_one_sentence(tmp_path, form, kept):
    path = recording(tmp_path, form)
    file = path if form == "bag" else path / f"drive.{form}"
    file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    with pytest.raises(
        ReadError, match=r"drive.* is damaged, cut off or not a ROS recording \(.+\); if"
    ) as caught:
        list(StereoBag(path))
    assert "\n" not in str(caught.value)


def test_a_folder_without_metadata(tmp_path):
    path = recording(tmp_path, "mcap")
    (path / "metadata.yaml").unlink()
    assert is_recording(path)
    with pytest.raises(ReadError, match=r"no metadata.yaml, .* try its file drive.mcap alone"):
        StereoBag(path)
    (path / "metadata.yaml").write_text("[a, {")
    with pytest.raises(ReadError, match="damaged"):
        StereoBag(path)


@pytest.mark.parametrize(
    ("entry", "hostile"),
    [
        ("message_count: 3", "message_count: many"),
        (f"name: {LEFT}", "name: 5"),
        ("nanoseconds_since_epoch: ", "nanoseconds_since_epoch: x"),
        ("type: sensor_msgs/msg/Image", "type: [1]"),
    ],
)
def test_metadata_of_wrong_types_are_an_error_of_the_package(tmp_path, entry, hostile):
    path = recording(tmp_path, "mcap")
    text = (path / "metadata.yaml").read_text()
    assert entry in text
    (path / "metadata.yaml").write_text(text.replace(entry, hostile))
    with pytest.raises(AanetError):
        list(StereoBag(path))


def test_aliases_in_the_metadata_are_refused(tmp_path):
    path = recording(tmp_path, "mcap")
    text = (path / "metadata.yaml").read_text()
    laughs = [
        "a0: &a0 [lol, lol]",
        *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)),
    ]
    hostile = text.replace("compression_format: ''", "compression_format: *a11").replace(
        "compression_mode: ''", "compression_mode: message"
    )
    assert hostile.count("a11") == 1
    (path / "metadata.yaml").write_text("\n".join([*laughs, hostile]))
    with pytest.raises(ReadError, match="aliases"):
        StereoBag(path)


def test_what_is_no_recording(tmp_path):
    with pytest.raises(ReadError, match=r"no\.bag does not exist; expected a ROS recording"):
        StereoBag(tmp_path / "no.bag")
    (tmp_path / "text.bag").write_text("#ROSBAG V1.2\n")
    with pytest.raises(ReadError, match="Bag version 102 is not supported"):
        StereoBag(tmp_path / "text.bag")
    (tmp_path / "folder").mkdir()
    assert not is_recording(tmp_path / "folder")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.mcap")
        with pytest.raises(ReadError, match="not a regular file"):
            StereoBag(tmp_path / "pipe.mcap")


@pytest.mark.parametrize(("form", "compression"), [("bag", "bz2"), ("bag", "lz4"), ("mcap", "storage")])
def test_decompression_is_bounded(tmp_path, form, compression, monkeypatch):
    path = recording(tmp_path, form, compression=compression)
    monkeypatch.setattr("aanet.io.ros_recording._MOST_DECOMPRESSED", 500)
    with pytest.raises(ReadError, match="a chunk of 0 MB"):
        list(StereoBag(path))


def test_a_message_that_expands_is_skipped(tmp_path, monkeypatch):
    bag = StereoBag(recording(tmp_path, "db3", compression="message"))
    monkeypatch.setattr("aanet.io.ros_recording._MOST_DECOMPRESSED", 60)
    with pytest.raises(ReadError, match="no frames"):
        list(bag)
    assert len(bag.unmatched) == 6


@pytest.mark.parametrize("form", FORMATS)
def test_memory_does_not_grow_with_the_recording(tmp_path, form):
    size, count = (500, 1000), 60
    times = [(topic, 1 + index / 10) for index in range(count) for topic in (LEFT, RIGHT)]
    path = tmp_path / ("drive.bag" if form == "bag" else "drive")
    write_recording(path, gray_frames(form, times, size), form)
    bag = StereoBag(path)
    tracemalloc.start()
    try:
        for pair in bag:
            pair.load()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 500 * 1000  # of 120 images


@pytest.mark.parametrize(
    ("form", "compression"), [("bag", None), ("bag", "lz4"), ("mcap", "storage"), ("db3", None)]
)
def test_random_damage_is_an_error_of_the_package_or_pairs(tmp_path, form, compression):
    path = recording(tmp_path, form, compression=compression)
    file = path if form == "bag" else path / f"drive.{form}"
    content, rng, refused = file.read_bytes(), random.Random(form), 0
    for _ in range(60):
        file.write_bytes(mutate_bytes(content, rng))
        try:
            for pair in StereoBag(path):
                pair.load()
        except AanetError as error:
            refused += 1
            assert len(str(error)) < 600  # noqa: PT017
    assert refused > 5


def test_without_the_extra_it_is_named(tmp_path, monkeypatch):
    path = recording(tmp_path, "bag")
    monkeypatch.setitem(sys.modules, "rosbags.rosbag1", None)
    monkeypatch.delitem(sys.modules, "aanet.io.ros_recording", raising=False)
    with pytest.raises(MissingExtraError, match=r"drive.bag needs the package rosbags; .* 'aanet\[ros\]'"):
        StereoBag(path)
