"""Images and camera_info of ROS messages, also of those that state what is not so."""

from __future__ import annotations

import random
from typing import Any

import cv2
import numpy as np
import pytest

from aanet.errors import ReadError
from aanet.io.images import encode_image
from aanet.io.ros_messages import camera_info_text, read_image_message, stamp_ns
from helpers.recordings import SECOND, START, Messages

ROS2 = Messages("mcap")


def read(pixels: np.ndarray, encoding: str, **changed: Any) -> np.ndarray:
    return read_image_message(ROS2.image(pixels, encoding, **changed), "The image")


def colors(bits: int = 8) -> np.ndarray:
    """Red, green, blue and gray quarters, which survive a mosaic away from their borders."""
    largest = 2**bits - 1
    image = np.zeros((16, 24, 3), np.uint8 if bits == 8 else np.uint16)
    image[:8, :12, 0] = image[:8, 12:, 1] = image[8:, :12, 2] = largest
    image[8:, 12:] = largest // 2
    return image


@pytest.mark.parametrize("bits", [8, 16])
def test_gray_and_color_in_any_order(bits):
    image = colors(bits)
    alpha = np.dstack([image, image[..., 0]])
    np.testing.assert_array_equal(read(image[..., 0], f"mono{bits}"), image[..., 0])
    np.testing.assert_array_equal(read(image, f"rgb{bits}"), image)
    np.testing.assert_array_equal(read(image[..., ::-1], f"bgr{bits}"), image)
    np.testing.assert_array_equal(read(alpha, f"rgba{bits}"), alpha)
    np.testing.assert_array_equal(read(alpha[..., [2, 1, 0, 3]], f"bgra{bits}"), alpha)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("pattern", ["rggb", "bggr", "gbrg", "grbg"])
def test_mosaics_have_their_colors_in_place(pattern, bits):
    image = colors(bits)
    mosaic = np.zeros(image.shape[:2], image.dtype)
    for index, color in enumerate(pattern):
        row, column = divmod(index, 2)
        mosaic[row::2, column::2] = image[row::2, column::2, "rgb".index(color)]
    for found in (
        read(mosaic, f"bayer_{pattern}{bits}"),
        read_image_message(
            ROS2.compressed(encode_image(mosaic, ".png"), f"bayer_{pattern}{bits}; png compressed "), "a"
        ),
    ):
        assert found.dtype == image.dtype
        for row, column in ((4, 6), (4, 18), (12, 6), (12, 18)):
            np.testing.assert_array_equal(found[row, column], image[row, column])


def test_yuv_is_converted():
    uyvy = np.tile(np.array([[128, 60], [128, 60]], np.uint8), (4, 4, 1))
    assert np.ptp(read(uyvy, "yuv422")) == 0  # gray
    np.testing.assert_array_equal(read(uyvy, "yuv422"), read(uyvy[..., ::-1], "yuv422_yuy2"))


def test_rows_may_be_padded_and_words_big_endian():
    image = colors(16)[..., 0]
    padded = np.hstack([image, np.full((16, 5), 7, np.uint16)])
    np.testing.assert_array_equal(read(padded, "mono16", width=24), image)
    np.testing.assert_array_equal(read(image.byteswap(), "16UC1", is_bigendian=1), image)


def test_compressed_images():
    image = cv2.GaussianBlur(colors(), (9, 9), 0)
    exact = read_image_message(ROS2.compressed(encode_image(image, ".png"), "rgb8; png compressed bgr8"), "a")
    np.testing.assert_array_equal(exact, image)
    close = read_image_message(ROS2.compressed(encode_image(image, ".jpg")), "a")
    assert np.abs(close.astype(int) - image).mean() < 10
    with pytest.raises(ReadError, match="The image is not a supported image"):
        read_image_message(ROS2.compressed(b"theora, perhaps"), "The image")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"height": 2**32 - 1}, "4294967295 pixels; an image has 1 to 32767"),
        ({"width": 30_000, "height": 30_000}, "at most 268 megapixels"),
        ({"width": 0}, "0×16 pixels"),
        ({"height": 17}, "damaged: 384 bytes in rows of 24 are not 24×17 pixels of mono8"),
        ({"width": 25}, "are not 25×16"),
        ({"step": 0}, "in rows of 0"),
        ({"step": 2**32 - 1}, "in rows of 4294967295"),
        ({"encoding": "32FC1"}, "the encoding '32FC1'; supported are mono, rgb"),
        ({"encoding": "rgb8"}, "are not 24×16 pixels of rgb8"),
        ({"data": np.zeros(0, np.uint8)}, "0 bytes"),
    ],
)
def test_what_is_stated_must_fit_the_data(changed, message):
    with pytest.raises(ReadError, match=message):
        read(colors()[..., 0], **{"encoding": "mono8", **changed})


def test_what_opencv_cannot_convert_is_an_error():
    with pytest.raises(ReadError, match="The image of 3×2 pixels cannot be converted to RGB"):
        read(np.zeros((2, 3, 2), np.uint8), "yuv422")


def test_time_stamps_are_those_of_the_header_or_else_of_the_recorder():
    assert stamp_ns(ROS2.image(colors(), "rgb8", 1.5), 7) == START * SECOND + 3 * SECOND // 2
    assert stamp_ns(ROS2.image(colors(), "rgb8", 0), 7) == 7


@pytest.mark.parametrize("form", ["bag", "mcap"])
def test_camera_info_is_printed_as_ros_does(form):
    message = Messages(form).camera_info(640, 480, 500.25, 0.12)
    text = camera_info_text(message)
    assert text is not None
    assert text.startswith(
        "width: 640\nheight: 480\ndistortion_model: plumb_bob\nD: [0.0, 0.0, 0.0, 0.0, 0.0]\n"
    )
    assert "\nP: [500.25, 0.0, 320.0, -60.03, 0.0, 500.25, " in text
    message.distortion_model = "x\nP: [1]"
    assert "\nP: [1]" not in str(camera_info_text(message))


def test_a_camera_that_is_not_calibrated_has_no_camera_info():
    message = ROS2.camera_info(640, 480, 500, 0.12)
    message.k = np.zeros(9)
    assert camera_info_text(message) is None


def test_damaged_messages_are_decoded_or_refused():
    """Whatever bytes a message has, it is an image of the stated size or an error of the package."""
    rng = random.Random(0)
    data = bytearray(ROS2.types.serialize_cdr(ROS2.image(colors(), "rgb8", 1), "sensor_msgs/msg/Image"))
    decoded = 0
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(4, 60)] = rng.randrange(256)
        try:
            message = ROS2.types.deserialize_cdr(bytes(changed), "sensor_msgs/msg/Image")
        except Exception:  # the library's own; the reader of recordings skips such messages
            continue
        try:
            assert read_image_message(message, "a").shape[:2] == (message.height, message.width)
            decoded += 1
        except ReadError as error:
            assert len(str(error)) < 700  # noqa: PT017
    assert decoded > 10
