"""Images and camera_info in ROS messages; what a message states is checked against its data first."""

from __future__ import annotations

from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import ReadError
from aanet.io.headers import MAX_PIXELS, MAX_SIDE
from aanet.io.images import AnyImage, decode_image

IMAGE = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"

_NANOSECONDS = 10**9
_MOST_COEFFICIENTS = 32  # of a distortion; no model has as many


class _Encoding(NamedTuple):
    """How the pixels of an encoding are stored, and OpenCV's conversion to gray or RGB(A)."""

    bits: int
    channels: int
    conversion: int | None = None


_BAYER = {
    "rggb": cv2.COLOR_BayerRGGB2RGB,
    "bggr": cv2.COLOR_BayerBGGR2RGB,
    "gbrg": cv2.COLOR_BayerGBRG2RGB,
    "grbg": cv2.COLOR_BayerGRBG2RGB,
}
_ENCODINGS = {
    f"{name}{bits}": _Encoding(bits, channels, conversion)
    for bits in (8, 16)
    for name, channels, conversion in (
        ("mono", 1, None),
        ("rgb", 3, None),
        ("rgba", 4, None),
        ("bgr", 3, cv2.COLOR_BGR2RGB),
        ("bgra", 4, cv2.COLOR_BGRA2RGBA),
        *((f"bayer_{pattern}", 1, conversion) for pattern, conversion in _BAYER.items()),
    )
}
_ENCODINGS |= {
    # Without a stated order of the colors, which is then OpenCV's.
    "8UC1": _ENCODINGS["mono8"],
    "8UC3": _ENCODINGS["bgr8"],
    "8UC4": _ENCODINGS["bgra8"],
    "16UC1": _ENCODINGS["mono16"],
    "16UC3": _ENCODINGS["bgr16"],
    **dict.fromkeys(("yuv422", "uyvy"), _Encoding(8, 2, cv2.COLOR_YUV2RGB_UYVY)),
    **dict.fromkeys(("yuv422_yuy2", "yuyv"), _Encoding(8, 2, cv2.COLOR_YUV2RGB_YUYV)),
}


def stamp_ns(message: Any, received_ns: int) -> int:
    """The time of exposure in nanoseconds; that of the recorder for a driver that states none."""
    stamp = message.header.stamp
    return int(stamp.sec) * _NANOSECONDS + int(stamp.nanosec) or received_ns


def read_image_message(message: Any, name: str) -> AnyImage:
    """Decode an Image or a CompressedImage to gray or RGB(A); error messages call it `name`."""
    if message.__msgtype__ != COMPRESSED_IMAGE:
        return _read_raw(message, name)
    image = decode_image(message.data.tobytes(), name)
    # A mosaic stays one when it is compressed: "bayer_rggb8; png compressed".
    conversion = _BAYER.get(message.format.removeprefix("bayer_")[:4])
    return image if image.ndim > 2 or conversion is None else _convert(image, conversion, name)


def camera_info_text(message: Any) -> str | None:
    """Print a CameraInfo as `rostopic echo` does, for the readers of calibrations; None if not calibrated."""
    # ROS 2 has lower-case names.
    matrices = {key: getattr(message, key if hasattr(message, key) else key.lower()) for key in "DKRP"}
    if not matrices["K"][0] or not matrices["P"][0]:
        return None
    model = message.distortion_model
    roi = message.roi
    lines = [
        f"width: {message.width}",
        f"height: {message.height}",
        f"distortion_model: {model if model.isidentifier() else repr(model[:40])}",
        *(
            f"{key}: [{', '.join(repr(float(value)) for value in values[:_MOST_COEFFICIENTS])}]"
            for key, values in matrices.items()
        ),
        *(f"binning_{axis}: {getattr(message, f'binning_{axis}')}" for axis in "xy"),
        "roi:",
        *(f"  {key}: {getattr(roi, key)}" for key in ("x_offset", "y_offset", "height", "width")),
    ]
    return "\n".join(lines) + "\n"


def _read_raw(message: Any, name: str) -> AnyImage:
    width, height, step, data = message.width, message.height, message.step, message.data
    encoding = _ENCODINGS.get(message.encoding)
    if encoding is None:
        raise ReadError(
            f"{name} has the encoding {message.encoding[:40]!r}; supported are mono, rgb, rgba, bgr, bgra "
            "and bayer with 8 or 16 bits, and yuv422."
        )
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE and width * height <= MAX_PIXELS):
        raise ReadError(
            f"{name} has {width}×{height} pixels; an image has 1 to {MAX_SIDE} pixels in each direction and "
            f"at most {MAX_PIXELS / 1e6:.0f} megapixels."
        )
    row = width * encoding.channels * encoding.bits // 8
    if step < row or len(data) != step * height:
        raise ReadError(
            f"{name} is damaged: {len(data)} bytes in rows of {step} are not {width}×{height} pixels of "
            f"{message.encoding}."
        )
    pixels = np.ascontiguousarray(data.reshape(height, step)[:, :row])
    if encoding.bits == 16:
        pixels = pixels.view(">u2" if message.is_bigendian else "<u2").astype(np.uint16, copy=False)
    image = pixels if encoding.channels == 1 else pixels.reshape(height, width, encoding.channels)
    return image if encoding.conversion is None else _convert(image, encoding.conversion, name)


def _convert(image: NDArray[Any], conversion: int, name: str) -> AnyImage:
    try:
        return cv2.cvtColor(image, conversion)
    except cv2.error as error:  # an image of one row, or of an odd width in YUV
        size = f"{image.shape[1]}×{image.shape[0]}"
        raise ReadError(f"{name} of {size} pixels cannot be converted to RGB: {error.err}.") from error
