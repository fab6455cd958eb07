"""ROS recordings for tests, written with the library that reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

Format = Literal["bag", "mcap", "db3"]
Recorded = tuple[str, float, Any]  # topic, seconds and message

SECOND = 10**9
START = 1_700_000_000  # seconds


class Messages:
    """Messages as ROS 1 or ROS 2 defines them."""

    def __init__(self, form: Format) -> None:
        self.types = get_typestore(Stores.ROS1_NOETIC if form == "bag" else Stores.ROS2_HUMBLE)
        self.is_ros1 = form == "bag"

    def image(self, pixels: np.ndarray, encoding: str, seconds: float = 0, **changed: Any) -> Any:
        """An Image of [H, W] or [H, W, C] pixels; fields may be changed, for instance to wrong values."""
        row = np.ascontiguousarray(pixels).reshape(pixels.shape[0], -1).view(np.uint8)
        fields = {
            "header": self.header(seconds),
            "height": pixels.shape[0],
            "width": pixels.shape[1],
            "encoding": encoding,
            "is_bigendian": 0,
            "step": row.shape[1],
            "data": row.ravel(),
        }
        return self.types.types["sensor_msgs/msg/Image"](**{**fields, **changed})

    def compressed(
        self, data: bytes, encoding: str = "bgr8; jpeg compressed bgr8", seconds: float = 0
    ) -> Any:
        """A CompressedImage with the content of an image file."""
        content = np.frombuffer(data, np.uint8)
        return self.types.types["sensor_msgs/msg/CompressedImage"](self.header(seconds), encoding, content)

    def camera_info(self, width: int, height: int, fx: float, baseline: float, seconds: float = 0) -> Any:
        """The CameraInfo of a rectified camera, `baseline` meters to the right of the left one."""
        cx, cy = width / 2, height / 2
        matrices = {
            "d": np.zeros(5),
            "k": np.array([fx, 0, cx, 0, fx, cy, 0, 0, 1.0]),
            "r": np.eye(3).ravel(),
            "p": np.array([fx, 0, cx, -fx * baseline, 0, fx, cy, 0, 0, 0, 1, 0.0]),
        }
        if self.is_ros1:
            matrices = {key.upper(): values for key, values in matrices.items()}
        roi = self.types.types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
        return self.types.types["sensor_msgs/msg/CameraInfo"](
            header=self.header(seconds),
            height=height,
            width=width,
            distortion_model="plumb_bob",
            binning_x=0,
            binning_y=0,
            roi=roi,
            **matrices,
        )

    def header(self, seconds: float) -> Any:
        """A Header; the seconds count from `START`, and 0 stands for a driver that states no time."""
        whole, rest = divmod(round(seconds * SECOND), SECOND)
        stamp = self.types.types["builtin_interfaces/msg/Time"](whole + START if seconds else 0, rest)
        sequence = {"seq": 0} if self.is_ros1 else {}
        return self.types.types["std_msgs/msg/Header"](**sequence, stamp=stamp, frame_id="camera")


def write_recording(
    path: Path, recorded: Iterable[Recorded], form: Format, compression: str | None = None
) -> Path:
    """Write messages with the time of their recording, in seconds after `START`; returns what to open.

    Args:
        path: The file of ROS 1, or the folder of ROS 2.
        recorded: The messages; bytes are written as they are, as an Image.
        form: The file format.
        compression: "bz2" or "lz4" for ROS 1; "message", "file" or "storage" for ROS 2.
    """
    messages = Messages(form)
    with _writer(path, form, compression) as writer:
        connections: dict[tuple[str, str], Any] = {}
        for topic, seconds, message in recorded:
            kind = "sensor_msgs/msg/Image" if isinstance(message, bytes) else message.__msgtype__
            if (topic, kind) not in connections:
                connections[topic, kind] = writer.add_connection(topic, kind, typestore=messages.types)
            serialize = messages.types.serialize_ros1 if messages.is_ros1 else messages.types.serialize_cdr
            data = message if isinstance(message, bytes) else serialize(message, kind)
            writer.write(connections[topic, kind], START * SECOND + round(seconds * SECOND), data)
    return path


def _writer(path: Path, form: Format, compression: str | None) -> Any:
    if form == "bag":
        writer = Writer1(path)
        writer.chunk_threshold = 20_000  # bytes; several chunks even for small images
        if compression:
            writer.set_compression(Writer1.CompressionFormat[compression.upper()])
        return writer
    plugin = StoragePlugin.MCAP if form == "mcap" else StoragePlugin.SQLITE3
    writer = Writer2(path, version=9, storage_plugin=plugin)
    if compression:
        writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    return writer


def gray_frames(
    form: Format, times: Sequence[tuple[str, float]], size: tuple[int, int] = (6, 8)
) -> list[Recorded]:
    """Gray images; the value of each is its position in the list."""
    messages = Messages(form)
    return [
        (topic, seconds, messages.image(np.full(size, value, np.uint8), "mono8", seconds))
        for value, (topic, seconds) in enumerate(times)
    ]
