"""Files as parts that can be changed, and put together again with correct lengths and checksums."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

_PNG = b"\x89PNG\r\n\x1a\n"
_PLY_END = b"end_header\n"
_DATA = b"\x00\x00"  # marks coded data among the segments of a JPEG
_TOKEN = re.compile(rb"[-+.\w]+|\s+|.", re.DOTALL)


class Structure(NamedTuple):
    """How to take a file apart, and how to join parts, whatever became of them."""

    split: Callable[[bytes], list[bytes]]
    join: Callable[[Sequence[bytes]], bytes]


def _tokens(content: bytes) -> list[bytes]:
    return _TOKEN.findall(content)


def _split_png(content: bytes) -> list[bytes]:
    at, chunks = len(_PNG), []
    while at < len(content):
        end = at + 8 + int.from_bytes(content[at : at + 4], "big")
        chunks.append(content[at + 4 : end])
        at = end + 4
    return chunks


def _join_png(chunks: Sequence[bytes]) -> bytes:
    whole = [chunk.ljust(4, b"a") for chunk in chunks]
    return _PNG + b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in whole
    )


def _split_jpeg(content: bytes) -> list[bytes]:
    """Segments without their lengths, and the coded data."""
    parts, at = [], 2
    while at < len(content) and content[at + 1] != 0xD9:
        end = at + 2 + int.from_bytes(content[at + 2 : at + 4], "big")
        parts.append(content[at : at + 2] + content[at + 4 : end])
        at = end
        if parts[-1][1] == 0xDA:
            found = re.compile(rb"\xff[^\x00\xd0-\xd7]").search(content, at)
            end = found.start() if found else len(content)
            parts.append(_DATA + content[at:end])
            at = end
    return parts


def _join_jpeg(parts: Sequence[bytes]) -> bytes:
    joined = [
        part[2:] if part.startswith(_DATA) else part[:2] + struct.pack(">H", len(part) % 65536) + part[2:]
        for part in parts
    ]
    return b"\xff\xd8" + b"".join(joined) + b"\xff\xd9"


def _split_zip(content: bytes) -> list[bytes]:
    """The name, the compression and the content of every member."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [
            b"%s\0%d\0%s" % (member.filename.encode(), member.compress_type, archive.read(member))
            for member in archive.infolist()
        ]


def _join_zip(parts: Sequence[bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for part in parts:
            name, _, rest = part.partition(b"\0")
            compression, _, content = rest.partition(b"\0")
            method = zipfile.ZIP_STORED if compression == b"0" else zipfile.ZIP_DEFLATED
            member = zipfile.ZipInfo(name.decode("latin-1")[:200])
            member.compress_type = method
            if member.filename not in archive.namelist():
                archive.writestr(member, content)
    return file.getvalue()


def _split_header(content: bytes) -> list[bytes]:
    """A PNM, PFM or PLY file: lines of text, and binary data."""
    lines = content.split(b"\n", 3)
    end = content.find(_PLY_END) + len(_PLY_END) if content.startswith(b"ply") else -len(lines[3])
    return [*_tokens(content[:end]), content[end:]]


def _split_npy(content: bytes) -> list[bytes]:
    end = 10 + int.from_bytes(content[8:10], "little")
    return [content[:8], *_tokens(content[10:end]), b"\0data" + content[end:]]


def _join_npy(parts: Sequence[bytes]) -> bytes:
    magic, rest = b"".join(parts[:1]), b"".join(parts[1:])
    header, _, data = rest.partition(b"\0data")
    return magic + (len(header) % 65536).to_bytes(2, "little") + header + data


def _split_safetensors(content: bytes) -> list[bytes]:
    end = 8 + int.from_bytes(content[:8], "little")
    return [*_tokens(content[8:end]), b"\0data" + content[end:]]


def _join_safetensors(parts: Sequence[bytes]) -> bytes:
    header, _, data = b"".join(parts).partition(b"\0data")
    return len(header).to_bytes(8, "little") + header + data


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content):
        value |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 128:
            break
    return value, at


def _as_varint(value: int) -> bytes:
    return (bytes((value & 127 | 128,)) + _as_varint(value >> 7)) if value > 127 else bytes((value,))


def _split_protobuf(content: bytes) -> list[bytes]:
    """The fields of a message; those with a length are stored without it, after their tag of one byte."""
    parts, at = [], 0
    while at < len(content):
        tag, start = content[at], at + 1
        value, end = _varint(content, start)
        if tag & 7 == 2:
            parts.append(bytes((tag,)) + content[end : end + value])
            at = end + value
        else:
            parts.append(content[at:end])
            at = end
    return parts


def _join_protobuf(parts: Sequence[bytes]) -> bytes:
    return b"".join(
        part[:1] + _as_varint(len(part) - 1) + part[1:] if part and part[0] & 7 == 2 else part
        for part in parts
    )


_TEXT = Structure(_tokens, b"".join)
_HEADER = Structure(_split_header, b"".join)
_BY_START = {
    **dict.fromkeys((b"P6\n", b"P5\n", b"Pf\n", b"ply\n"), _HEADER),
    _PNG: Structure(_split_png, _join_png),
    b"\xff\xd8": Structure(_split_jpeg, _join_jpeg),
    b"PK": Structure(_split_zip, _join_zip),
    b"\x93NUMPY": Structure(_split_npy, _join_npy),
    b"\x08": Structure(_split_protobuf, _join_protobuf),  # the version of ONNX comes first
}
_SAFETENSORS = Structure(_split_safetensors, _join_safetensors)


def structure_of(content: bytes) -> Structure | None:
    """The structure of a valid file; None for binary formats that are mutated byte by byte."""
    for start, structure in _BY_START.items():
        if content.startswith(start):
            return structure
    if content[5:9] == b"\0\0\0{":
        return _SAFETENSORS
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    return _TEXT
