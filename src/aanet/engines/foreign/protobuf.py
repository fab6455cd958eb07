"""Protocol buffers without their schema, which is enough to look into ONNX and TensorFlow files.

It needs neither onnx nor tensorflow, copies nothing, and never follows what a file says without a bound.
"""

from __future__ import annotations

from collections.abc import Iterator

Value = int | memoryview

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZE = {_FIXED64: 8, _FIXED32: 4}


class ProtobufError(ValueError):
    """The bytes are not a protocol buffer."""


def fields(message: memoryview) -> Iterator[tuple[int, Value]]:
    """Yield the number and the value of every field of a message: a number, or bytes of any meaning."""
    place = 0
    while place < len(message):
        key, place = read_varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = read_varint(message, place)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, place = read_varint(message, place)
        elif kind in _FIXED_SIZE:
            length = _FIXED_SIZE[kind]
        else:
            raise ProtobufError("a field has an unknown type")
        if length > len(message) - place:
            raise ProtobufError("a field is longer than the message")
        yield key >> 3, message[place : place + length]
        place += length


def messages(message: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the values of a field that are bytes: texts, or messages inside this one."""
    for found, value in fields(message):
        if found == number and isinstance(value, memoryview):
            yield value


def text(message: memoryview, number: int) -> str:
    """Return the last value of a text field, as protocol buffers define it; "" if there is none."""
    found = b""
    for value in messages(message, number):
        found = bytes(value[:1000])
    return found.decode("utf-8", "replace")


def number(message: memoryview, wanted: int) -> int:
    """Return the last value of a number field; 0 if there is none."""
    found = 0
    for key, value in fields(message):
        if key == wanted and isinstance(value, int):
            found = value
    return found


def bytes_field(number: int, value: bytes | memoryview) -> bytes:
    """Return a field of bytes: a text, or a message inside this one."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + bytes(value)


def number_field(number: int, value: int) -> bytes:
    """Return a field of a number that is not negative."""
    return varint(number << 3 | _VARINT) + varint(value)


def varint(value: int) -> bytes:
    """Return a number as seven bits per byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def read_varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return the number that begins at a place, and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ProtobufError("the message ends within a number")
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ProtobufError("a number is too long")
