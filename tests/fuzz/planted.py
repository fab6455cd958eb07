"""Readers with faults, which the tests of the fuzzing itself must find."""

from __future__ import annotations

import os
from pathlib import Path

from aanet.errors import ReadError
from fuzz.readers import Kind

_seen: set[bytes] = set()


def _refuse(data: bytes, _: Path) -> None:
    raise ReadError("two\nlines of text" if b"!" in data else "This file is refused.")


def _raise(data: bytes, _: Path) -> None:
    if b"!" in data:
        raise KeyError(data)


def _crash(data: bytes, _: Path) -> None:
    if b"!" in data:
        os.abort()


def _crash_later(data: bytes, _: Path) -> None:
    """Like a corrupted heap: a file leaves damage behind, another one hits it."""
    _seen.update(bytes((byte,)) for byte in data)
    if b"!" in _seen and b"?" in data:
        os.abort()


def _loop(data: bytes, _: Path) -> None:
    while b"!" in data:
        pass


def _fill_memory(data: bytes, _: Path) -> None:
    if b"!" in data:
        bytearray(b"1") * 1_300_000_000


_READERS = {
    "refuse": _refuse,
    "raise": _raise,
    "crash": _crash,
    "crash-later": _crash_later,
    "loop": _loop,
    "memory": _fill_memory,
}
KINDS = {name: Kind("planted", lambda: [b"a" * 40], read) for name, read in _READERS.items()}
