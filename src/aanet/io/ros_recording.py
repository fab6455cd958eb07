"""Messages of ROS recordings, one at a time; every failure of the library rosbags becomes a `ReadError`.

The standard definitions of messages are used, never those in a recording: rosbags would generate Python code
from them and execute it.  Decompression stops at a limit, so that a small file cannot fill the memory.
"""

from __future__ import annotations

import bz2
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lz4.frame
from rosbags.interfaces import Connection
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag1.reader import Chunk, Header
from rosbags.rosbag2 import Reader as Reader2
from rosbags.rosbag2 import storage_mcap
from rosbags.typesys import Stores, get_typestore

from aanet.errors import AanetError, ReadError
from aanet.io.files import MEGABYTE, read_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STORAGE_SUFFIXES = (".mcap", ".db3")  # of ROS 2

_METADATA = "metadata.yaml"
_MOST_METADATA = 2 * MEGABYTE
_YAML_ALIAS = re.compile(rb"[\s\[{,:-]\*\w")
_MOST_DECOMPRESSED = 1000 * MEGABYTE  # of one chunk or message
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "bz2": bz2.BZ2Decompressor,
    "lz4": lz4.frame.LZ4FrameDecompressor,
    "zstd": zstd.ZstdDecompressor,
}


class Message(NamedTuple):
    """A message of a recording."""

    topic: str
    received: int  # when it was recorded, nanoseconds
    size: int  # bytes
    content: Any  # None if it is damaged


class Recording:
    """An open recording."""

    def __init__(self, path: Path, reader: Reader1 | Reader2) -> None:
        is_ros1 = isinstance(reader, Reader1)
        types = get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_HUMBLE)
        self._path, self._reader = path, reader
        self._deserialize = types.deserialize_ros1 if is_ros1 else types.deserialize_cdr
        self._unpack = _message_decompression(reader)
        with _translated(path):
            for connection in reader.connections:  # metadata in YAML may have values of any type
                if not isinstance(connection.topic, str) or not isinstance(connection.msgcount, int):
                    raise ValueError("the metadata of a topic are no name and no number of messages")
            self.topics = sorted({connection.topic for connection in reader.connections})
            self.start_ns, self.end_ns = int(reader.start_time), int(reader.end_time)

    def counts(self, *kinds: str) -> dict[str, int]:
        """The number of messages by topic, for topics of these types of messages."""
        counts: dict[str, int] = {}
        for connection in self._reader.connections:
            if connection.msgtype in kinds:
                counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
        return counts

    def messages(
        self, topics: Collection[str], kinds: Collection[str], start_ns: int | None = None
    ) -> Iterator[Message]:
        """Read the messages of these topics and types, in the order in which they were recorded."""

        def wanted(connection: Connection) -> bool:
            return connection.topic in topics and connection.msgtype in kinds

        connections = [connection for connection in self._reader.connections if wanted(connection)]
        if not connections:
            return
        with _translated(self._path):
            stream = self._reader.messages(connections=connections, start=start_ns)
        while True:
            with _translated(self._path):
                found = next(stream, None)
            if found is None:
                return
            connection, received, data = found
            if wanted(connection):  # a damaged index may lead to other messages
                yield Message(connection.topic, received, len(data), self._content(connection, data))

    def _content(self, connection: Connection, data: bytes) -> Any:
        try:
            return self._deserialize(self._unpack(data), connection.msgtype)
        except Exception:  # of any kind, because rosbags decodes whatever is there
            return None


@contextmanager
def open_recording(path: Path) -> Iterator[Recording]:
    """Open a .bag, .mcap or .db3 file, or the folder of a ROS 2 recording."""
    _check_files(path)
    with _translated(path):
        reader = _BoundedReader1(path) if path.suffix == ".bag" else Reader2(path)
        reader.open()
    try:
        yield Recording(path, reader)
    finally:
        reader.close()


def _check_files(path: Path) -> None:
    """Refuse what is no file, such as a pipe, which would never end."""
    expected = "a ROS recording (.bag, .mcap, .db3 or a folder)"
    if not path.exists():
        raise ReadError(f"{path} does not exist; expected {expected}.")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        if not file.is_file() and (file == path or file.suffix in (*STORAGE_SUFFIXES, ".yaml", ".zstd")):
            raise ReadError(f"{file} is not a regular file; expected {expected}.")
    if not path.is_dir():
        return
    metadata = path / _METADATA
    if not metadata.exists():
        storage = next((file.name for file in files if file.suffix in STORAGE_SUFFIXES), "")
        raise ReadError(
            f"{path} has no {_METADATA}, which is written when a recording ends; repair it with ros2 bag "
            f"reindex, or try its file {storage} alone."
        )
    # rosbags prints values in its messages; with aliases, a few lines can stand for terabytes.
    if _YAML_ALIAS.search(read_bytes(metadata, "the metadata of a ROS recording", _MOST_METADATA)):
        raise ReadError(f"{metadata} has YAML aliases (*), which are not supported.")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except AanetError:
        raise
    except PermissionError as error:
        raise ReadError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    except Exception as error:  # of any kind, because rosbags decodes whatever is there
        reason = " ".join(str(error).split()).rstrip(".")[:160] or type(error).__name__
        repair = {".bag": "rosbag reindex", ".mcap": "mcap recover"}.get(path.suffix, "ros2 bag reindex")
        raise ReadError(
            f"{path} is damaged, cut off or not a ROS recording ({reason}); if it is cut off, {repair} may "
            "repair it."
        ) from error


class _BoundedReader1(Reader1):
    """A reader of ROS 1 bags whose chunks are not larger than they state."""

    def read_chunk(self) -> Chunk:
        """Read the header of a chunk."""
        assert self.bio is not None
        before = self.bio.tell()
        chunk = super().read_chunk()
        after = self.bio.tell()
        if after > os.fstat(self.bio.fileno()).st_size:
            raise ValueError("the file ends within a chunk")
        self.bio.seek(before)
        header = Header.read(self.bio)
        self.bio.seek(after)
        compression = header.get_string("compression")
        if compression == "none":
            return chunk
        unpack = partial(_decompress, compression, size=header.get_uint32("size"))
        return chunk._replace(decompressor=unpack)


def _decompress(compression: str, data: bytes, size: int) -> bytes:
    """Decompress a chunk that states its size."""
    if size > _MOST_DECOMPRESSED:
        raise ValueError(f"a chunk of {size / MEGABYTE:.0f} MB")
    content = _decompress_at_most(compression, data, size)
    if len(content) != size:
        raise ValueError("a compressed chunk is smaller than it states")
    return content


def _decompress_at_most(compression: str, data: bytes, limit: int) -> bytes:
    decompressor = _DECOMPRESSORS[compression]()
    # One byte more, so that the end of the data is reached if it fits.
    content: bytes = decompressor.decompress(data, max_length=limit + 1)
    if not decompressor.eof:
        raise ValueError("compressed data is cut off or larger than it states")
    return content


# rosbags passes the size that a chunk states to these functions, but its own ones decompress everything.
storage_mcap.DECOMPRESSORS.update(
    {name: partial(_decompress, name) for name in storage_mcap.DECOMPRESSORS if name in _DECOMPRESSORS}
)


def _message_decompression(reader: Reader1 | Reader2) -> Callable[[bytes], bytes]:
    """Take over the decompression of messages one by one, for which rosbags has no limit either."""
    if not isinstance(reader, Reader2) or reader.compression_mode != "message":
        return lambda data: data
    reader.storage.metadata = reader.storage.metadata._replace(compression_mode=None)
    return lambda data: _decompress_at_most("zstd", data, _MOST_DECOMPRESSED)
