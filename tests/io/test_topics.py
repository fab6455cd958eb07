"""The topics of a stereo pair are found by their names, or asked for."""

from __future__ import annotations

import pytest

from aanet.errors import InputError
from aanet.io.topics import camera_info_topic, choose_topics, find_topic, is_rectified


def choose(*topics: str) -> tuple[str, str]:
    return choose_topics(dict.fromkeys(topics, 5), "drive.bag")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("/stereo/left/image_raw", "/stereo/right/image_raw"),
        ("/kitti/camera_color_left/image_raw", "/kitti/camera_color_right/image_raw"),
        ("/cam0/image_raw", "/cam1/image_raw"),
        ("/camera/infra1/image_rect_raw", "/camera/infra2/image_rect_raw"),
        ("/left/image_raw/compressed", "/right/image_raw/compressed"),
    ],
)
def test_common_names_are_found(left, right):
    assert choose("/front/image", right, left, "/imu") == (left, right)


def test_rectified_color_images_are_preferred():
    kinds = ["image_raw", "image_rect", "image_rect_color/compressed", "image_rect_color", "image_mono"]
    topics = [f"/{side}/{kind}" for side in ("left", "right") for kind in kinds]
    assert choose(*topics) == ("/left/image_rect_color", "/right/image_rect_color")
    assert choose("/left/image_raw", "/left/image_rect", "/right/image_raw") == (
        "/left/image_raw",
        "/right/image_raw",
    )


def test_a_topic_without_messages_is_no_camera():
    counts = {"/left/image_rect": 0, "/right/image_rect": 3, "/left/image_raw": 3, "/right/image_raw": 3}
    assert choose_topics(counts, "drive.bag")[0] == "/left/image_raw"


def test_two_rigs_are_a_question():
    with pytest.raises(
        InputError, match=r"several pairs .*/front/left/image and /front/right/image; .*--left"
    ):
        choose("/front/left/image", "/front/right/image", "/rear/left/image", "/rear/right/image")


def test_without_sides_the_topics_are_listed():
    with pytest.raises(InputError, match=r"drive.bag has no two image topics .*: /down/image, /up/image\."):
        choose("/up/image", "/down/image")


def test_a_named_topic_is_found_or_the_others_are_listed():
    counts = {"/left/image_raw/compressed": 5, "/right/image": 5}
    assert find_topic(counts, "/right/image", "drive.bag") == "/right/image"
    assert find_topic(counts, "right/image", "drive.bag") == "/right/image"
    assert find_topic(counts, "/left/image_raw", "drive.bag") == "/left/image_raw/compressed"
    with pytest.raises(
        InputError, match=r"no image topic /rigth/image \(did you mean '/right/image'\?\); its .*"
    ):
        find_topic(counts, "/rigth/image", "drive.bag")
    with pytest.raises(InputError) as caught:
        find_topic({"/a\x1b[31m\n": 1}, "/b", "drive.bag")
    assert str(caught.value).isprintable()


def test_the_camera_info_is_in_the_same_namespace():
    assert camera_info_topic("/stereo/left/image_raw") == "/stereo/left/camera_info"
    assert camera_info_topic("/stereo/left/image_raw/compressed") == "/stereo/left/camera_info"


def test_rectified_topics_say_so():
    assert is_rectified("/left/image_rect_color")
    assert is_rectified("/camera/infra1/image_rect_raw")
    assert not is_rectified("/left/image_raw")
    assert not is_rectified("/direct/left/image")
